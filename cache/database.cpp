#include "cache/database.h"

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "cache/error.h"
#include "cache/schema_check.h"
#include "cache/write_ahead_log.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;
using Kind = CacheError::Kind;
using sqlite::Access;
using sqlite::Connection;
using sqlite::RawHeader;
using sqlite::Transaction;

constexpr std::int64_t log_limit_bytes = 8 << 20;

[[noreturn]] void refuse_foreign(const fs::path& file, std::string_view why) {
    throw CacheError(Kind::not_a_cache, fmt::format("{}: {}", file.string(), why),
                     "set HONE_CACHE to another file; this one was left as it is");
}

void require_known_version(const fs::path& file, std::int64_t found, std::int64_t newest) {
    if (found <= newest) return;
    throw CacheError(Kind::newer_schema,
                     fmt::format("{}: has schema version {}, this build knows versions up to {}",
                                 file.string(), found, newest),
                     "use the newer build of Hone that wrote it, or set HONE_CACHE to another file");
}

/// Everything that can be refused without taking a lock or recovering a log.
void check_header(const RawHeader& header, const fs::path& file, std::int64_t newest) {
    if (header.empty) return;
    if (!header.is_database) refuse_foreign(file, "is not an SQLite database");
    if (header.application_id == application_id) require_known_version(file, header.user_version, newest);
    if (header.application_id != application_id && header.application_id != 0) {
        refuse_foreign(file, fmt::format("is a database of another program (application id {:#010x})",
                                         header.application_id));
    }
}

/// The header of a file that nobody is creating just now. Whoever creates one (or was killed at it) has a
/// journal beside it until its first page is whole: SQLite waits for the former and rolls the latter back.
RawHeader settled_header(const Connection& connection, const fs::path& file) {
    const RawHeader header = connection.raw_header();
    if (header.empty || header.is_database) return header;
    if (version_of(with_suffix(file, "-journal")).size > 0) return {.empty = true};
    return connection.raw_header();  // the journal may have gone between the two looks
}

/// The same again through SQLite, which also sees what is in the journal or the write-ahead log. The answers
/// must be of one moment, or a file that another process is creating looks like that of another program: the
/// caller holds a transaction.
std::int64_t check_identity(const Connection& connection, std::span<const Migration> schema) {
    const std::int64_t id = connection.integer("PRAGMA application_id");
    const std::int64_t version = connection.integer("PRAGMA user_version");
    const bool fresh =
        id == 0 && version == 0 && connection.integer("SELECT count(*) FROM sqlite_schema") == 0;
    if (id != application_id && !fresh) refuse_foreign(connection.file(), "is a database of another program");
    require_known_version(connection.file(), version, schema.back().to);
    if (!fresh) require_schema(connection, schema, version);
    return version;
}

/// The version, from one consistent view.
std::int64_t identity_now(const Connection& connection, std::span<const Migration> schema) {
    Transaction view(connection, Transaction::Kind::read);
    return check_identity(connection, schema);
}

/// A copy as it was before a migration, beside the file. Where it finds no room, nothing of it takes any.
void back_up(const fs::path& file, std::int64_t version) {
    const std::string stem = fmt::format("{}.v{}-{:%Y%m%dT%H%M%S}", file.string(), version,
                                         fmt::gmtime(std::chrono::system_clock::now()));
    fs::path target = stem + ".backup";
    std::error_code ignored;  // what cannot be looked at cannot be made either
    for (int i = 2; fs::exists(target, ignored); ++i) target = fmt::format("{}-{}.backup", stem, i);
    create_private_file(target);
    try {
        Connection::open(file, Access::read_write).copy_to(target);
    } catch (...) {
        for (const char* suffix : {"", "-journal"}) fs::remove(with_suffix(target, suffix), ignored);
        throw;
    }
}

enum class Backup : std::uint8_t { beside_the_file, none };

void bring_up_to_date(const Connection& connection, std::span<const Migration> schema, Backup backup) {
    const std::int64_t newest = schema.back().to;
    // Only for an empty file: an existing one would be written at each opening.
    if (connection.raw_header().empty) connection.execute("PRAGMA auto_vacuum = INCREMENTAL");
    if (identity_now(connection, schema) == newest) return;
    Transaction transaction(connection, Transaction::Kind::write);
    const std::int64_t version = check_identity(connection, schema);  // another process may have been faster
    if (version > 0 && version < newest && backup == Backup::beside_the_file)
        back_up(connection.file(), version);
    for (const Migration& migration : schema) {
        if (migration.to <= version) continue;
        connection.execute(std::string(migration.sql));
        connection.execute(fmt::format("PRAGMA user_version = {}", migration.to));
    }
    connection.execute(fmt::format("PRAGMA application_id = {}", application_id));
    transaction.commit();
}

/// A file in WAL mode that was carried to a network file system: the exclusive mode needs no shared memory to
/// leave it.
void leave_wal(const Connection& connection) {
    connection.execute("PRAGMA locking_mode = EXCLUSIVE");
    (void)connection.text("PRAGMA journal_mode = TRUNCATE");
    connection.execute("PRAGMA locking_mode = NORMAL");
    (void)connection.integer(
        "SELECT count(*) FROM sqlite_schema");  // the lock is given back at the next access
}

/// False where the file system has no shared memory. When two processes change the mode of a new file at
/// once, SQLite tells one of them "busy" without waiting, because both hold a lock that the other needs: so
/// the waiting is done here.
bool enter_wal(const Connection& connection) {
    constexpr auto patience = std::chrono::seconds(10);
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (true) {
        try {
            return connection.text("PRAGMA journal_mode = WAL") == "wal";
        } catch (const CacheError& error) {
            if (error.kind() != Kind::busy || std::chrono::steady_clock::now() > deadline) throw;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void choose_journal(const Connection& connection, bool network) {
    if (!network && enter_wal(connection)) {
        connection.keep_wal_files();
        connection.execute(
            fmt::format("PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = {}", log_limit_bytes));
        return;
    }
    (void)connection.text("PRAGMA journal_mode = TRUNCATE");
    connection.execute("PRAGMA synchronous = FULL");
}

void require_readable(const fs::path& file) {
    if (can_read(file)) return;
    throw CacheError(Kind::read_only, fmt::format("{}: may not be read by this user", file.string()),
                     "have its owner make it readable (chmod), or set HONE_CACHE to another file");
}

Database open_for_writing(const fs::path& name, const DatabaseOptions& options) {
    std::error_code error;
    create_private_directory(fs::absolute(name, error).parent_path());
    const fs::path file = resolved(name);
    create_private_file(file);
    require_safe(file, OpenMode::read_write);
    require_readable(file);
    if (!can_write(file)) {
        throw CacheError(Kind::read_only,
                         fmt::format("{}: the file or its directory is read-only", file.string()),
                         "make both writable, or set HONE_CACHE to a place that is");
    }
    const bool network = options.network_file_system.value_or(file_system_of(file.parent_path()).network);
    Connection connection = Connection::open(file, Access::read_write);
    const RawHeader header = settled_header(connection, file);
    check_header(header, file, options.schema.back().to);
    if (network && header.wal) leave_wal(connection);
    bring_up_to_date(connection, options.schema, Backup::beside_the_file);
    choose_journal(connection, network);
    return {.connection = std::move(connection), .network_file_system = network};
}

/// Whether a write-ahead log of this size is one that SQLite reads in place. It asks a log with another
/// header again and again for ten seconds, since a writer might be at work on it.
bool can_be_read_in_place(const fs::path& log, std::int64_t bytes) {
    return bytes == 0 || (bytes > log_header_bytes && has_log_header(log));
}

/// A database in WAL mode is read through the log's index, which must exist already: making one would be
/// writing. When nothing is in the log, the file alone is complete and may be read as it is. SQLite looks
/// into a log whatever the database's header says.
Access access_for_reading(const RawHeader& header, const fs::path& file) {
    const fs::path log = with_suffix(file, "-wal");
    const std::int64_t log_bytes = version_of(log).size;
    const bool has_index = version_of(with_suffix(file, "-shm")).size >= 0;
    if (has_index && log_bytes >= 0 && can_be_read_in_place(log, log_bytes)) return Access::read_only;
    if (!header.wal) return log_bytes > 0 ? Access::recovered : Access::read_only;
    return log_bytes <= log_header_bytes ? Access::immutable : Access::recovered;
}

/// One look at the files. What has an older schema, or none yet, is brought up to date in memory.
Database view_of(const fs::path& file, Access access, const DatabaseOptions& options) {
    // The versions are those from before anything was read.
    const FileVersion version = version_of(file);
    const FileVersion log_version = version_of(with_suffix(file, "-wal"));
    const FileVersion journal_version = version_of(with_suffix(file, "-journal"));
    Connection connection = Connection::open(file, access);
    if (identity_now(connection, options.schema) < options.schema.back().to) {
        if (access != Access::recovered) return view_of(file, Access::recovered, options);
        bring_up_to_date(connection, options.schema, Backup::none);
    }
    return {.connection = std::move(connection),
            .unlocked = access != Access::read_only,
            .version = version,
            .log_version = log_version,
            .journal_version = journal_version};
}

Database best_view_of(const fs::path& file, const DatabaseOptions& options) {
    const Connection look = Connection::open(file, Access::read_only);
    const RawHeader header = settled_header(look, file);
    check_header(header, file, options.schema.back().to);
    const Access access = access_for_reading(header, file);
    try {
        return view_of(file, access, options);
    } catch (const CacheError& error) {
        if (access != Access::read_only || !is_cured_by_recovery(error)) throw;
    }
    return view_of(file, Access::recovered, options);
}

Database open_for_reading(const fs::path& name, const DatabaseOptions& options) {
    constexpr int attempts = 5;  // a writer that is at work meanwhile makes its files readable soon
    const fs::path file = resolved(name);
    require_safe(file, OpenMode::read_only);
    require_readable(file);
    const bool network = file_system_of(file.parent_path()).network;
    for (int attempt = 1;; ++attempt) {
        Database database = best_view_of(file, options);
        database.network_file_system = options.network_file_system.value_or(network);
        if (database.unchanged() || attempt == attempts) return database;
    }
}

}  // namespace

bool Database::unchanged() const {
    const fs::path& file = connection.file();
    return !unlocked ||
           (version == version_of(file) && log_version == version_of(with_suffix(file, "-wal")) &&
            journal_version == version_of(with_suffix(file, "-journal")));
}

bool is_cured_by_recovery(const CacheError& error) {
    return error.kind() == Kind::busy || error.kind() == Kind::read_only || error.kind() == Kind::unusable;
}

Database open_database(const fs::path& file, OpenMode mode, const DatabaseOptions& options) {
    return mode == OpenMode::read_write ? open_for_writing(file, options) : open_for_reading(file, options);
}

}  // namespace hone::cache
