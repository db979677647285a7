#include "cache/sqlite/overlay.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "cache/error.h"
#include "cache/file_system.h"

namespace hone::cache::sqlite {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t block_bytes = 4096;

/// A file whose written blocks are kept in memory, above one on disk or above nothing.
class Layer {
  public:
    Layer() = default;
    Layer(sqlite3_file* below, std::int64_t bytes) : below_(below), below_bytes_(bytes), bytes_(bytes) {}

    [[nodiscard]] std::int64_t bytes() const { return bytes_; }

    /// What lies behind the end reads as zero bytes and is told as a short read.
    int read(char* to, std::int64_t count, std::int64_t at) const {
        const std::int64_t there = std::clamp<std::int64_t>(bytes_ - at, 0, count);
        for (std::int64_t done = 0; done < there;) {
            const std::int64_t piece = std::min(there - done, block_bytes - (at + done) % block_bytes);
            const int code = read_piece(to + done, piece, at + done);
            if (code != SQLITE_OK) return code;
            done += piece;
        }
        std::fill(to + there, to + count, '\0');
        return there == count ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
    }

    int write(const char* from, std::int64_t count, std::int64_t at) {
        for (std::int64_t done = 0; done < count;) {
            const std::int64_t place = (at + done) % block_bytes;
            const std::int64_t piece = std::min(count - done, block_bytes - place);
            Block* block = nullptr;
            const int code = own_block(at + done - place, block);
            if (code != SQLITE_OK) return code;
            std::copy_n(from + done, piece, block->begin() + place);
            done += piece;
        }
        bytes_ = std::max(bytes_, at + count);
        return SQLITE_OK;
    }

    void truncate(std::int64_t bytes) {
        if (bytes >= bytes_) return;
        std::erase_if(written_, [&](const auto& entry) { return entry.first * block_bytes >= bytes; });
        if (const auto last = written_.find(bytes / block_bytes); last != written_.end())
            std::fill(last->second.begin() + bytes % block_bytes, last->second.end(), '\0');
        bytes_ = bytes;
        below_bytes_ = std::min(below_bytes_, bytes);
    }

  private:
    using Block = std::array<char, block_bytes>;

    int read_piece(char* to, std::int64_t count, std::int64_t at) const {
        if (const auto own = written_.find(at / block_bytes); own != written_.end()) {
            std::copy_n(own->second.begin() + at % block_bytes, count, to);
            return SQLITE_OK;
        }
        return read_below(to, count, at);
    }

    int read_below(char* to, std::int64_t count, std::int64_t at) const {
        const std::int64_t there = std::clamp<std::int64_t>(below_bytes_ - at, 0, count);
        std::fill(to + there, to + count, '\0');
        if (there == 0) return SQLITE_OK;
        const int code = below_->pMethods->xRead(below_, to, static_cast<int>(there), at);
        return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
    }

    int own_block(std::int64_t at, Block*& block) {
        const auto [entry, fresh] = written_.try_emplace(at / block_bytes);
        block = &entry->second;
        return fresh ? read_below(block->data(), block_bytes, at) : SQLITE_OK;
    }

    sqlite3_file* below_ = nullptr;
    std::int64_t below_bytes_ = 0;
    std::int64_t bytes_ = 0;
    std::unordered_map<std::int64_t, Block> written_;
};

[[noreturn]] void refuse(const fs::path& file, std::string_view why) {
    throw CacheError(CacheError::Kind::unusable,
                     fmt::format("{}: what a process left there that was killed: {}", file.string(), why),
                     "run `hone cache gc` as the owner of the file, which recovers it on disk");
}

/// Reads a log or a journal. SQLite holds no lock on either of them, so a descriptor of our own does no harm.
void read_whole(const fs::path& file, Layer& layer) {
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0 && errno == EACCES) {
        throw CacheError(
            CacheError::Kind::read_only,
            fmt::format("{}: may not be read by this user, and holds what was stored last", file.string()),
            "have its owner run `hone cache gc`, which empties it, or make it readable (chmod)");
    }
    if (descriptor < 0) refuse(file, std::strerror(errno));
    std::array<char, 16 * block_bytes> buffer{};
    ssize_t count = 0;
    while ((count = ::read(descriptor, buffer.data(), buffer.size())) > 0) {
        layer.write(buffer.data(), count, layer.bytes());
        if (layer.bytes() > Overlay::limit_bytes) break;
    }
    const int error = count < 0 ? errno : 0;
    ::close(descriptor);
    if (error != 0) refuse(file, std::strerror(error));
    if (layer.bytes() > Overlay::limit_bytes)
        refuse(file, fmt::format("has more than {} bytes", Overlay::limit_bytes));
}

/// A file as SQLite holds it: begins with its table of functions.
struct OpenFile {
    sqlite3_file base;
    Layer* layer;
};

Layer& layer_of(sqlite3_file* file) { return *reinterpret_cast<OpenFile*>(file)->layer; }

/// Memory that runs out inside of a callback is told to SQLite: no exception passes through C.
template <class Work>
int guarded(const Work& work) {
    try {
        return work();
    } catch (const std::bad_alloc&) {
        return SQLITE_IOERR_NOMEM;
    }
}

int close_file(sqlite3_file*) { return SQLITE_OK; }
int read_file(sqlite3_file* file, void* to, int count, sqlite3_int64 at) {
    return layer_of(file).read(static_cast<char*>(to), count, at);
}
int write_file(sqlite3_file* file, const void* from, int count, sqlite3_int64 at) {
    return guarded([&] { return layer_of(file).write(static_cast<const char*>(from), count, at); });
}
int truncate_file(sqlite3_file* file, sqlite3_int64 bytes) {
    layer_of(file).truncate(bytes);
    return SQLITE_OK;
}
int sync_file(sqlite3_file*, int) { return SQLITE_OK; }
int file_size(sqlite3_file* file, sqlite3_int64* bytes) {
    *bytes = layer_of(file).bytes();
    return SQLITE_OK;
}
int lock_file(sqlite3_file*, int) { return SQLITE_OK; }
int check_lock(sqlite3_file*, int* held) {
    *held = 0;
    return SQLITE_OK;
}
int control_file(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
/// No more than SQLite takes on a disk: a shorter journal than a sector counts as empty.
int sector_size(sqlite3_file*) { return 512; }
int characteristics(sqlite3_file*) { return 0; }

/// Version 1, without shared memory: the exclusive mode keeps the log's index on the heap.
constexpr sqlite3_io_methods file_methods{.iVersion = 1,
                                          .xClose = close_file,
                                          .xRead = read_file,
                                          .xWrite = write_file,
                                          .xTruncate = truncate_file,
                                          .xSync = sync_file,
                                          .xFileSize = file_size,
                                          .xLock = lock_file,
                                          .xUnlock = lock_file,
                                          .xCheckReservedLock = check_lock,
                                          .xFileControl = control_file,
                                          .xSectorSize = sector_size,
                                          .xDeviceCharacteristics = characteristics,
                                          .xShmMap = nullptr,
                                          .xShmLock = nullptr,
                                          .xShmBarrier = nullptr,
                                          .xShmUnmap = nullptr,
                                          .xFetch = nullptr,
                                          .xUnfetch = nullptr};

}  // namespace

/// The VFS: time and random numbers are those of the default one.
struct Overlay::Files {
    sqlite3_vfs vfs = *sqlite3_vfs_find(nullptr);
    std::string name;
    std::map<std::string, Layer> layers;

    static std::map<std::string, Layer>& layers_of(sqlite3_vfs* vfs) {
        return static_cast<Files*>(vfs->pAppData)->layers;
    }

    static int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* opened_with) {
        file->pMethods = nullptr;
        return guarded([&] {
            auto& layers = layers_of(vfs);
            const std::string key = name != nullptr ? name : fmt::format("/temporary{}", layers.size());
            if (!layers.contains(key) && (flags & SQLITE_OPEN_CREATE) == 0) return SQLITE_CANTOPEN;
            reinterpret_cast<OpenFile*>(file)->layer = &layers[key];
            file->pMethods = &file_methods;
            if (opened_with != nullptr) *opened_with = flags;
            return SQLITE_OK;
        });
    }

    static int remove(sqlite3_vfs* vfs, const char* name, int) {
        layers_of(vfs).erase(name);
        return SQLITE_OK;
    }

    static int access(sqlite3_vfs* vfs, const char* name, int, int* result) {
        *result = layers_of(vfs).contains(name) ? 1 : 0;
        return SQLITE_OK;
    }

    static int full_path(sqlite3_vfs*, const char* name, int room, char* to) {
        if (static_cast<int>(std::strlen(name)) >= room) return SQLITE_CANTOPEN;
        std::strcpy(to, name);
        return SQLITE_OK;
    }
};

Overlay::Overlay(sqlite3_file* below, const fs::path& file) : files_(std::make_unique<Files>()) {
    static std::atomic<std::uint64_t> count{0};
    sqlite3_int64 bytes = 0;
    if (below->pMethods->xFileSize(below, &bytes) != SQLITE_OK) refuse(file, "its size cannot be read");
    files_->layers.emplace(database, Layer(below, bytes));
    for (const char* suffix : {"-wal", "-journal"}) {
        fs::path beside = file;
        beside += suffix;
        // An empty one holds nothing, and may be its owner's alone.
        if (version_of(beside).size <= 0) continue;
        read_whole(beside, files_->layers[std::string(database) + suffix]);
    }
    files_->name = fmt::format("hone-overlay-{}", ++count);
    sqlite3_vfs& vfs = files_->vfs;
    vfs.pNext = nullptr;
    vfs.zName = files_->name.c_str();
    vfs.pAppData = files_.get();
    vfs.szOsFile = sizeof(OpenFile);
    vfs.xOpen = Files::open;
    vfs.xDelete = Files::remove;
    vfs.xAccess = Files::access;
    vfs.xFullPathname = Files::full_path;
    sqlite3_vfs_register(&vfs, 0);
}

Overlay::~Overlay() { sqlite3_vfs_unregister(&files_->vfs); }

const char* Overlay::name() const { return files_->name.c_str(); }

}  // namespace hone::cache::sqlite
