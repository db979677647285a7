#include "cache/sqlite/connection.h"

#include <sqlite3.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "cache/sqlite/overlay.h"

namespace hone::cache::sqlite {
namespace {

using Kind = CacheError::Kind;

// A reader that finds the file locked for longer reads a recovered view instead.
constexpr int reader_timeout_ms = 500;

// Steps of SQLite's machine after which a statement is taken for endless: some seconds of work. Reading a
// million trials takes a fifth of them.
constexpr int steps_a_look = 1000;
constexpr std::int64_t looks_a_statement = 200'000;

static_assert(SQLITE_VERSION_NUMBER >= 3051003,
              "SQLite before 3.51.3 can corrupt a write-ahead log when it is reset");

bool is_out_of_space(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

Kind kind_of(int code, int system_error) {
    switch (code & 0xff) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
        case SQLITE_PROTOCOL: return Kind::busy;
        case SQLITE_FULL: return Kind::full;
        case SQLITE_READONLY: return code == SQLITE_READONLY_DBMOVED ? Kind::unusable : Kind::read_only;
        case SQLITE_PERM: return Kind::read_only;
        case SQLITE_NOTADB: return Kind::not_a_cache;
        case SQLITE_CORRUPT: return Kind::damaged;
        case SQLITE_INTERRUPT: return Kind::damaged;  // no query of ours takes as long
        case SQLITE_ERROR: return Kind::damaged;      // our own SQL is right, so a table or column is missing
        case SQLITE_IOERR: return is_out_of_space(system_error) ? Kind::full : Kind::unusable;
        case SQLITE_CANTOPEN:
            if (is_out_of_space(system_error)) return Kind::full;
            return system_error == EROFS || system_error == EACCES ? Kind::read_only : Kind::unusable;
        default: return Kind::unusable;
    }
}

std::string hint_for(Kind kind) {
    switch (kind) {
        case Kind::busy:
            return "another process kept the cache locked for 10 seconds without writing to it; try again, "
                   "and "
                   "see who has it open (fuser)";
        case Kind::full:
            return "free space on its file system, allow larger files (ulimit -f), run `hone cache gc`, or "
                   "set HONE_CACHE to another place";
        case Kind::read_only:
            return "make the file and its directory writable, or set HONE_CACHE to a place that is";
        case Kind::not_a_cache: return "set HONE_CACHE to another file; this one was left as it is";
        case Kind::damaged:
            return "run `hone cache verify`; to start anew move the file away, then `hone merge` what can "
                   "still be read";
        default: return "run `hone doctor`, or set HONE_CACHE to a file on a local disk";
    }
}

/// What this process may have too little of, whatever the file is.
std::string hint_for(Kind kind, int system_error) {
    switch (system_error) {
        case EMFILE: return "allow this process more open files (ulimit -n)";
        case ENFILE: return "the system has no room for more open files: close some, or raise fs.file-max";
        case ENOMEM: return "allow this process more memory (ulimit -v)";
        default: return hint_for(kind);
    }
}

[[noreturn]] void fail(sqlite3* handle, int code, const std::filesystem::path& file,
                       std::source_location where) {
    const int extended = handle != nullptr ? sqlite3_extended_errcode(handle) : code;
    const int system_error = handle != nullptr ? sqlite3_system_errno(handle) : 0;
    const int best = (extended & 0xff) == (code & 0xff) ? extended : code;
    const Kind kind = kind_of(best, system_error);
    std::string what = fmt::format("{}: {}", file.string(), sqlite3_errstr(code));
    if (handle != nullptr && (code & 0xff) == SQLITE_ERROR)
        what += fmt::format(": {}", sqlite3_errmsg(handle));
    if (system_error != 0) what += fmt::format(" ({})", std::strerror(system_error));
    what += fmt::format(" [SQLite {}, {}:{}]", best,
                        std::filesystem::path(where.file_name()).filename().string(), where.line());
    throw CacheError(kind, what, hint_for(kind, system_error));
}

void check(int code, sqlite3* handle, const std::filesystem::path& file, std::source_location where) {
    if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE) fail(handle, code, file, where);
}

std::string percent_encoded(const std::string& path) {
    std::string out;
    for (const char c : path) {
        if (c == '%' || c == '?' || c == '#') {
            out += fmt::format("%{:02x}", static_cast<unsigned char>(c));
        } else {
            out += c;
        }
    }
    return out;
}

std::int64_t big_endian(const unsigned char* bytes) {
    return std::int64_t{bytes[0]} << 24 | std::int64_t{bytes[1]} << 16 | std::int64_t{bytes[2]} << 8 |
           bytes[3];
}

}  // namespace

/// Nobody uses a statement any more: these were kept.
void Connection::Close::operator()(sqlite3* handle) const noexcept {
    while (sqlite3_stmt* kept = sqlite3_next_stmt(handle, nullptr)) sqlite3_finalize(kept);
    sqlite3_close_v2(handle);
}

sqlite3_stmt* Connection::take_kept(std::string_view sql) const {
    const auto found = kept_.find(sql);
    if (found == kept_.end()) return nullptr;
    sqlite3_stmt* statement = found->second;
    kept_.erase(found);
    return statement;
}

bool Connection::keep(sqlite3_stmt* statement) const noexcept {
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    try {
        return kept_.emplace(sqlite3_sql(statement), statement).second;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

Connection Connection::open_uri(const std::string& uri, int flags, const std::filesystem::path& file,
                                const char* vfs) {
    sqlite3* raw = nullptr;
    const auto here = std::source_location::current();
    const int code =
        sqlite3_open_v2(uri.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, vfs);
    Connection connection(Handle(raw), file);
    check(code, raw, file, here);
    connection.limit_steps();
    connection.wait_for_others();
    connection.restrict();
    return connection;
}

Connection Connection::open_recovered(const std::filesystem::path& file) {
    struct Below {
        Connection connection;
        Overlay overlay;
        explicit Below(const std::filesystem::path& name)
            : connection(open(name, Access::immutable)), overlay(connection.file_handle(), name) {}
    };
    const auto kept = std::make_shared<Below>(file);
    Connection connection = open_uri(Overlay::database, SQLITE_OPEN_READWRITE, file, kept->overlay.name());
    connection.handle_.get_deleter().kept_open = kept;
    // Keeps the log's index on the heap; and what was recovered is not copied once more at the end.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY");
    sqlite3_db_config(connection.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    return connection;
}

Connection Connection::open(const std::filesystem::path& file, Access access) {
    const std::string path = "file:" + percent_encoded(file.string());
    constexpr int common = SQLITE_OPEN_URI | SQLITE_OPEN_NOFOLLOW;
    switch (access) {
        case Access::read_write: return open_uri(path, common | SQLITE_OPEN_READWRITE, file);
        case Access::read_only: {
            Connection reader = open_uri(path + "?readonly_shm=1", common | SQLITE_OPEN_READONLY, file);
            sqlite3_busy_timeout(reader.get(), reader_timeout_ms);
            return reader;
        }
        case Access::recovered: return open_recovered(file);
        case Access::immutable: break;
    }
    return open_uri(path + "?immutable=1", common | SQLITE_OPEN_READONLY, file);
}

Connection Connection::open_in_memory() {
    return open_uri(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, ":memory:");
}

/// What SQLite's own advice says for files that something else may have changed (sqlite.org/security.html).
void Connection::restrict() const {
    sqlite3* db = get();
    constexpr std::array<std::pair<int, int>, 4> settings{{{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                                           {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                                           {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                                           {SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, 0}}};
    for (const auto& [option, value] : settings) {
        check(sqlite3_db_config(db, option, value, nullptr), db, file_, std::source_location::current());
    }
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 512 << 20);
    sqlite3_limit(db, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
    execute("PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON");
}

/// The backstop against what a damaged or a foreign file may hold: a loop of pages, a view without an end.
void Connection::limit_steps() {
    Close& owner = handle_.get_deleter();
    owner.looks = std::make_shared<std::int64_t>(0);
    const auto is_too_many = [](void* looks) {
        return ++*static_cast<std::int64_t*>(looks) > looks_a_statement ? 1 : 0;
    };
    sqlite3_progress_handler(get(), steps_a_look, is_too_many, owner.looks.get());
}

void Connection::wait_for_others() {
    Close& owner = handle_.get_deleter();
    owner.patience = std::make_shared<Patience>(file_);
    owner.patience->guard(get());
}

void Connection::execute(const std::string& sql, std::source_location where) const {
    begin_steps();
    check(sqlite3_exec(get(), sql.c_str(), nullptr, nullptr, nullptr), get(), file_, where);
}

std::int64_t Connection::integer(const std::string& query, std::source_location where) const {
    Statement statement(*this, query, where);
    return statement.step(where) ? statement.integer() : 0;
}

std::string Connection::text(const std::string& query, std::source_location where) const {
    Statement statement(*this, query, where);
    return statement.step(where) ? statement.text() : std::string();
}

sqlite3_file* Connection::file_handle() const {
    sqlite3_file* file = nullptr;
    check(sqlite3_file_control(get(), "main", SQLITE_FCNTL_FILE_POINTER, &file), get(), file_,
          std::source_location::current());
    return file;
}

RawHeader Connection::raw_header() const {
    sqlite3_file* file = file_handle();
    const auto here = std::source_location::current();
    if (file == nullptr || file->pMethods == nullptr) return {.empty = true};
    sqlite3_int64 size = 0;
    check(file->pMethods->xFileSize(file, &size), get(), file_, here);
    if (size == 0) return {.empty = true};
    std::array<unsigned char, 100> bytes{};
    const int code = file->pMethods->xRead(file, bytes.data(), static_cast<int>(bytes.size()), 0);
    if (code != SQLITE_IOERR_SHORT_READ) check(code, get(), file_, here);
    // Offsets from sqlite.org/fileformat.html, 1.3.
    return {.is_database = std::memcmp(bytes.data(), "SQLite format 3", 16) == 0,
            .wal = bytes[19] == 2,
            .application_id = big_endian(&bytes[68]),
            .user_version = big_endian(&bytes[60])};
}

void Connection::keep_wal_files() const {
    int on = 1;
    check(sqlite3_file_control(get(), "main", SQLITE_FCNTL_PERSIST_WAL, &on), get(), file_,
          std::source_location::current());
}

bool Connection::has_moved() const {
    int moved = 0;
    check(sqlite3_file_control(get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved), get(), file_,
          std::source_location::current());
    return moved != 0;
}

void Connection::copy_to(const std::filesystem::path& file) const {
    const auto here = std::source_location::current();
    const Connection target = open(file, Access::read_write);
    sqlite3_backup* backup = sqlite3_backup_init(target.get(), "main", get(), "main");
    if (backup == nullptr) fail(target.get(), sqlite3_errcode(target.get()), file, here);
    const int stepped = sqlite3_backup_step(backup, -1);
    const int finished = sqlite3_backup_finish(backup);
    check(stepped, target.get(), file, here);
    check(finished, target.get(), file, here);
}

void Connection::leak() {
    // What the handle reads through stays as well.
    static_cast<void>(new Close(handle_.get_deleter()));
    static_cast<void>(handle_.release());
    kept_.clear();
}

std::int64_t Connection::changes() const { return sqlite3_changes64(get()); }

void Statement::Finalize::operator()(sqlite3_stmt* handle) const noexcept {
    if (keeper == nullptr || !keeper->keep(handle)) sqlite3_finalize(handle);
}

void Statement::prepare(std::string_view sql, unsigned int flags, std::source_location where) {
    sqlite3_stmt* raw = nullptr;
    const int code = sqlite3_prepare_v3(connection_->get(), sql.data(), static_cast<int>(sql.size()), flags,
                                        &raw, nullptr);
    handle_.reset(raw);
    check(code, connection_->get(), connection_->file(), where);
}

Statement::Statement(const Connection& connection, std::string_view sql, std::source_location where)
    : connection_(&connection) {
    connection.begin_steps();
    prepare(sql, 0, where);
}

Statement::Statement(Kept, const Connection& connection, std::string_view sql, std::source_location where)
    : connection_(&connection), handle_(connection.take_kept(sql), Finalize{&connection}) {
    connection.begin_steps();
    if (!handle_) prepare(sql, SQLITE_PREPARE_PERSISTENT, where);
}

void Statement::bind_next(std::string_view value) {
    // An empty view may have no address, which SQLite would take for NULL.
    const char* data = value.data() != nullptr ? value.data() : "";
    check(sqlite3_bind_text64(handle_.get(), next_parameter_++, data, value.size(), SQLITE_TRANSIENT,
                              SQLITE_UTF8),
          connection_->get(), connection_->file(), std::source_location::current());
}

void Statement::bind_next(std::int64_t value) {
    check(sqlite3_bind_int64(handle_.get(), next_parameter_++, value), connection_->get(),
          connection_->file(), std::source_location::current());
}

void Statement::bind_next(double value) {
    check(sqlite3_bind_double(handle_.get(), next_parameter_++, value), connection_->get(),
          connection_->file(), std::source_location::current());
}

void Statement::bind_next(std::span<const std::byte> value) {
    const void* data = value.data() != nullptr ? static_cast<const void*>(value.data()) : "";
    check(sqlite3_bind_blob64(handle_.get(), next_parameter_++, data, value.size(), SQLITE_STATIC),
          connection_->get(), connection_->file(), std::source_location::current());
}

bool Statement::step(std::source_location where) {
    next_column_ = 0;
    const int code = sqlite3_step(handle_.get());
    check(code, connection_->get(), connection_->file(), where);
    return code == SQLITE_ROW;
}

void Statement::run(std::source_location where) {
    while (step(where)) {
    }
    reset();
}

void Statement::reset() {
    sqlite3_reset(handle_.get());
    sqlite3_clear_bindings(handle_.get());
    next_parameter_ = 1;
}

std::string Statement::text() {
    const int column = next_column_++;
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
    const int size = sqlite3_column_bytes(handle_.get(), column);
    return data != nullptr ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

std::int64_t Statement::integer() { return sqlite3_column_int64(handle_.get(), next_column_++); }

double Statement::real() { return sqlite3_column_double(handle_.get(), next_column_++); }

std::vector<std::byte> Statement::blob() {
    const int column = next_column_++;
    const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(handle_.get(), column));
    const int size = sqlite3_column_bytes(handle_.get(), column);
    return data != nullptr ? std::vector<std::byte>(data, data + size) : std::vector<std::byte>();
}

Transaction::Transaction(const Connection& connection, Kind kind, std::source_location where)
    : connection_(&connection) {
    Statement(Statement::Kept{}, connection, kind == Kind::write ? "BEGIN IMMEDIATE" : "BEGIN DEFERRED",
              where)
        .run(where);
}

Transaction::~Transaction() {
    // Some errors (disk full) have rolled back already; then this does nothing that matters.
    if (open_) sqlite3_exec(connection_->get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit(std::source_location where) {
    Statement(Statement::Kept{}, *connection_, "COMMIT", where).run(where);
    open_ = false;
}

}  // namespace hone::cache::sqlite
