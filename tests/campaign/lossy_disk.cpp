#include "tests/campaign/lossy_disk.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

namespace hone::campaign {
namespace {

constexpr std::int64_t piece_bytes = 512;

/// An open file of the VFS: SQLite's part first, then ours, then that of the VFS below in the same
/// allocation.
struct OpenFile {
    sqlite3_file base;
    LossyDisk* disk;
    std::string* name;

    [[nodiscard]] sqlite3_file* below() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

OpenFile* ours(sqlite3_file* file) { return reinterpret_cast<OpenFile*>(file); }
sqlite3_file* below(sqlite3_file* file) { return ours(file)->below(); }
LossyDisk* disk_of(sqlite3_vfs* vfs) { return static_cast<LossyDisk*>(vfs->pAppData); }

int close_file(sqlite3_file* file) {
    const int result = below(file)->pMethods->xClose(below(file));
    delete ours(file)->name;
    return result;
}

int read_file(sqlite3_file* file, void* bytes, int count, sqlite3_int64 offset) {
    return below(file)->pMethods->xRead(below(file), bytes, count, offset);
}

int write_file(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset) {
    if (!ours(file)->disk->may_write()) return SQLITE_IOERR_WRITE;
    const int result = below(file)->pMethods->xWrite(below(file), bytes, count, offset);
    if (result == SQLITE_OK) ours(file)->disk->written(*ours(file)->name, bytes, count, offset);
    return result;
}

int truncate_file(sqlite3_file* file, sqlite3_int64 bytes) {
    if (!ours(file)->disk->may_write()) return SQLITE_IOERR_TRUNCATE;
    const int result = below(file)->pMethods->xTruncate(below(file), bytes);
    if (result == SQLITE_OK) ours(file)->disk->truncated(*ours(file)->name, bytes);
    return result;
}

int sync_file(sqlite3_file* file, int /*flags*/) {  // of a disk that only pretends, nothing need be synced
    if (!ours(file)->disk->may_write()) return SQLITE_IOERR_FSYNC;
    ours(file)->disk->synced(*ours(file)->name);
    return SQLITE_OK;
}

int file_size(sqlite3_file* file, sqlite3_int64* bytes) {
    return below(file)->pMethods->xFileSize(below(file), bytes);
}
int lock(sqlite3_file* file, int level) { return below(file)->pMethods->xLock(below(file), level); }
int unlock(sqlite3_file* file, int level) { return below(file)->pMethods->xUnlock(below(file), level); }
int check_lock(sqlite3_file* file, int* held) {
    return below(file)->pMethods->xCheckReservedLock(below(file), held);
}
int control(sqlite3_file* file, int what, void* argument) {
    if (what == SQLITE_FCNTL_SIZE_HINT) return SQLITE_OK;  // would make a file longer behind our back
    return below(file)->pMethods->xFileControl(below(file), what, argument);
}
int sector_bytes(sqlite3_file* file) { return below(file)->pMethods->xSectorSize(below(file)); }
int characteristics(sqlite3_file* file) { return below(file)->pMethods->xDeviceCharacteristics(below(file)); }
int map_shared(sqlite3_file* file, int region, int bytes, int extend, void volatile** out) {
    return below(file)->pMethods->xShmMap(below(file), region, bytes, extend, out);
}
int lock_shared(sqlite3_file* file, int offset, int count, int flags) {
    return below(file)->pMethods->xShmLock(below(file), offset, count, flags);
}
void shared_barrier(sqlite3_file* file) { below(file)->pMethods->xShmBarrier(below(file)); }
int unmap_shared(sqlite3_file* file, int remove) {
    return below(file)->pMethods->xShmUnmap(below(file), remove);
}

constexpr sqlite3_io_methods methods{.iVersion = 2,
                                     .xClose = close_file,
                                     .xRead = read_file,
                                     .xWrite = write_file,
                                     .xTruncate = truncate_file,
                                     .xSync = sync_file,
                                     .xFileSize = file_size,
                                     .xLock = lock,
                                     .xUnlock = unlock,
                                     .xCheckReservedLock = check_lock,
                                     .xFileControl = control,
                                     .xSectorSize = sector_bytes,
                                     .xDeviceCharacteristics = characteristics,
                                     .xShmMap = map_shared,
                                     .xShmLock = lock_shared,
                                     .xShmBarrier = shared_barrier,
                                     .xShmUnmap = unmap_shared,
                                     .xFetch = nullptr,
                                     .xUnfetch = nullptr};

int open_file(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
    LossyDisk* disk = disk_of(vfs);
    file->pMethods = nullptr;
    const int result = disk->below()->xOpen(disk->below(), name, below(file), flags, out_flags);
    if (result != SQLITE_OK) return result;
    ours(file)->disk = disk;
    ours(file)->name = new std::string(name == nullptr ? "" : name);
    file->pMethods = &methods;
    if (name != nullptr) disk->opened(name);
    return SQLITE_OK;
}

int remove_file(sqlite3_vfs* vfs, const char* name, int sync_folder) {
    LossyDisk* disk = disk_of(vfs);
    if (!disk->may_write()) return SQLITE_IOERR_DELETE;
    const int result = disk->below()->xDelete(disk->below(), name, 0);
    if (result == SQLITE_OK) disk->removed(name, sync_folder != 0);
    return result;
}

std::string content_of(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void apply(std::string& content, const std::string& bytes, std::int64_t offset) {
    const auto at = static_cast<std::size_t>(offset);
    if (content.size() < at + bytes.size()) content.resize(at + bytes.size(), '\0');
    std::copy(bytes.begin(), bytes.end(), content.begin() + offset);
}

/// Files that SQLite creates; the database itself is there, empty, before SQLite opens it.
bool is_log(std::string_view name) { return name.ends_with("-wal") || name.ends_with("-journal"); }

bool chance(std::mt19937& random, double probability) {
    return std::uniform_real_distribution<>(0, 1)(random) < probability;
}

}  // namespace

LossyDisk::LossyDisk() : below_(sqlite3_vfs_find(nullptr)), vfs_(*below_) {
    vfs_.szOsFile += static_cast<int>(sizeof(OpenFile));
    vfs_.pNext = nullptr;
    vfs_.zName = "lossy";
    vfs_.pAppData = this;
    vfs_.xOpen = open_file;
    vfs_.xDelete = remove_file;
    // What is not replaced is called with our vfs, and the system's own looks at nothing of it but
    // mxPathname.
    sqlite3_vfs_register(&vfs_, 1);
}

LossyDisk::~LossyDisk() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_vfs_register(below_, 1);
}

void LossyDisk::opened(const std::string& name) {
    const auto known = files_.find(name);
    if (known != files_.end() && !known->second.removed) return;
    const std::string content = content_of(name);
    files_[name] = {.durable = content, .exists_durably = !content.empty(), .changes = {}, .removed = false};
}

bool LossyDisk::may_write() {
    if (left_ > 0) --left_;
    return left_ != 0;
}

void LossyDisk::written(const std::string& file, const void* bytes, int count, std::int64_t offset) {
    const auto* from = static_cast<const char*>(bytes);
    for (std::int64_t done = 0; done < count;) {
        const std::int64_t room = piece_bytes - (offset + done) % piece_bytes;
        const std::int64_t piece = std::min<std::int64_t>(room, count - done);
        files_[file].changes.push_back({.offset = offset + done,
                                        .is_cut = false,
                                        .bytes = std::string(from + done, static_cast<std::size_t>(piece))});
        done += piece;
    }
}

void LossyDisk::truncated(const std::string& file, std::int64_t bytes) {
    files_[file].changes.push_back({.offset = bytes, .is_cut = true, .bytes = {}});
}

void LossyDisk::synced(const std::string& name) {
    File& file = files_[name];
    for (const Change& change : file.changes) {
        if (change.is_cut) file.durable.resize(static_cast<std::size_t>(change.offset), '\0');
        if (!change.is_cut) apply(file.durable, change.bytes, change.offset);
    }
    file.changes.clear();
    // At the first sync of a file that it has created SQLite syncs the folder, too.
    if (!std::exchange(file.exists_durably, true))
        std::erase_if(files_, [](const auto& each) { return each.second.removed; });
    if (on_sync_) on_sync_(name);
}

void LossyDisk::removed(const std::string& name, bool folder_synced) {
    if (folder_synced) files_.erase(name);
    if (!folder_synced && files_.contains(name)) files_[name].removed = true;
}

std::string LossyDisk::remains_of(const File& file, std::mt19937& random, double kept) {
    std::string content = file.durable;
    for (const Change& change : file.changes) {
        if (!chance(random, kept)) {
            ++pieces_dropped_;
        } else if (change.is_cut) {
            content.resize(static_cast<std::size_t>(change.offset), '\0');
        } else {
            apply(content, change.bytes, change.offset);
        }
    }
    return content;
}

void LossyDisk::leave_remains(std::mt19937& random) {
    const double kept = std::uniform_real_distribution<>(0, 1)(random);
    for (const auto& [name, file] : files_) {
        const bool never_there = !file.exists_durably && is_log(name) && chance(random, 0.5);
        const bool stays_removed = file.removed && chance(random, 0.5);
        ::unlink((name + "-shm").c_str());
        if (never_there || stays_removed) {
            ::unlink(name.c_str());
            continue;
        }
        const std::string content = remains_of(file, random, kept);
        std::ofstream(name, std::ios::binary | std::ios::trunc) << content;
        if (file.removed) ::chmod(name.c_str(), 0600);
    }
    files_.clear();
    left_ = -1;
}

}  // namespace hone::campaign
