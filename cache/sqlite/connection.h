// SQLite behind three small types. This folder alone includes sqlite3.h. Every failure is thrown as a
// CacheError that names the file, what was being done, and what to do about it. Not thread-safe: one
// connection, one thread at a time. Internal to the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/error.h"
#include "cache/sqlite/patience.h"

struct sqlite3;
struct sqlite3_file;
struct sqlite3_stmt;

namespace hone::cache::sqlite {

enum class Access : std::uint8_t {
    read_write,
    read_only,  ///< takes locks, writes nothing: needs an existing -shm file when the database is in WAL mode
    immutable,  ///< takes no locks: only for a file that nobody changes meanwhile
    recovered,  ///< as recovery from log and journal leaves it, which happens in memory; no locks either
};

/// What the file's first 100 bytes say, read through SQLite's own descriptor (opening and closing another one
/// would drop the locks this process holds) and without touching anything.
struct RawHeader {
    bool empty = false;  ///< the file has no bytes yet
    bool is_database = false;
    bool wal = false;
    std::int64_t application_id = 0;
    std::int64_t user_version = 0;
};

class Connection {
  public:
    /// The file must exist and contain no symbolic link in its path; nothing is read from it yet.
    [[nodiscard]] static Connection open(const std::filesystem::path& file, Access access);
    /// An empty database in memory.
    [[nodiscard]] static Connection open_in_memory();

    void execute(const std::string& sql, std::source_location = std::source_location::current()) const;
    /// First column of the first row of a query.
    [[nodiscard]] std::int64_t integer(const std::string& query,
                                       std::source_location = std::source_location::current()) const;
    [[nodiscard]] std::string text(const std::string& query,
                                   std::source_location = std::source_location::current()) const;

    [[nodiscard]] RawHeader raw_header() const;
    /// Keeps the (emptied) -wal and -shm files when the last connection closes: readers without write
    /// permission need them.
    void keep_wal_files() const;
    void copy_to(const std::filesystem::path& file) const;
    /// The name no longer stands for the open file: it was removed, moved or replaced. Asks the file system.
    [[nodiscard]] bool has_moved() const;
    /// Rows changed by the last statement.
    [[nodiscard]] std::int64_t changes() const;

    [[nodiscard]] const std::filesystem::path& file() const { return file_; }
    [[nodiscard]] sqlite3* get() const { return handle_.get(); }
    /// Forgets the connection without closing it: all that may be done with one inherited over fork().
    void leak();
    /// A new statement may take its own time.
    void begin_steps() const { *handle_.get_deleter().looks = 0; }

  private:
    friend class Statement;
    /// A statement of this text that was kept and is not in use; null where there is none.
    [[nodiscard]] sqlite3_stmt* take_kept(std::string_view sql) const;
    /// False where it cannot be kept.
    [[nodiscard]] bool keep(sqlite3_stmt* statement) const noexcept;

    struct Close {
        std::shared_ptr<void> kept_open;      ///< what the handle reads through
        std::shared_ptr<std::int64_t> looks;  ///< how often the running statement was looked at
        std::shared_ptr<Patience> patience;   ///< with others' locks
        void operator()(sqlite3* handle) const noexcept;
    };
    using Handle = std::unique_ptr<sqlite3, Close>;

    Connection(Handle handle, std::filesystem::path file)
        : handle_(std::move(handle)), file_(std::move(file)) {}
    static Connection open_uri(const std::string& uri, int flags, const std::filesystem::path& file,
                               const char* vfs = nullptr);
    static Connection open_recovered(const std::filesystem::path& file);
    void restrict() const;
    void limit_steps();
    void wait_for_others();
    /// SQLite's own descriptor of the database.
    [[nodiscard]] sqlite3_file* file_handle() const;

    Handle handle_;
    std::filesystem::path file_;
    mutable std::map<std::string, sqlite3_stmt*, std::less<>> kept_;  ///< by text; they end with the handle
};

/// A prepared statement. Values are bound, and columns read, in order.
class Statement {
  public:
    Statement(const Connection& connection, std::string_view sql,
              std::source_location = std::source_location::current());
    /// For what runs again and again: the connection keeps it prepared, which takes SQLite longer than to run
    /// it. A tuner stores a row for each of thousands of candidates.
    struct Kept {};
    Statement(Kept, const Connection& connection, std::string_view sql,
              std::source_location = std::source_location::current());

    template <class... Values>
    Statement& bind(const Values&... values) {
        (bind_next(values), ...);
        return *this;
    }
    void bind_next(std::string_view value);
    void bind_next(const std::string& value) { bind_next(std::string_view(value)); }
    void bind_next(std::int64_t value);
    void bind_next(int value) { bind_next(std::int64_t{value}); }
    void bind_next(double value);
    /// Not copied: the bytes must stay until the statement is reset.
    void bind_next(std::span<const std::byte> value);
    void bind_next(const char*) = delete;
    void bind_next(bool) = delete;

    /// True when there is a row to read.
    [[nodiscard]] bool step(std::source_location = std::source_location::current());
    /// Runs a statement without result to its end and makes it ready for the next values.
    void run(std::source_location = std::source_location::current());
    void reset();

    [[nodiscard]] std::string text();
    [[nodiscard]] std::int64_t integer();
    [[nodiscard]] int small() { return static_cast<int>(integer()); }
    [[nodiscard]] double real();
    [[nodiscard]] std::vector<std::byte> blob();

  private:
    struct Finalize {
        const Connection* keeper;
        Finalize() noexcept : keeper(nullptr) {}
        explicit Finalize(const Connection* where) noexcept : keeper(where) {}
        void operator()(sqlite3_stmt* handle) const noexcept;
    };
    void prepare(std::string_view sql, unsigned int flags, std::source_location where);

    const Connection* connection_;
    std::unique_ptr<sqlite3_stmt, Finalize> handle_;
    int next_parameter_ = 1;
    int next_column_ = 0;
};

/// Rolls back unless committed.
class Transaction {
  public:
    enum class Kind : std::uint8_t {
        read,   ///< one consistent view over several queries
        write,  ///< takes the writer's lock at once, so it can only be busy here and not half-way
    };

    Transaction(const Connection& connection, Kind kind,
                std::source_location = std::source_location::current());
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    ~Transaction();
    void commit(std::source_location = std::source_location::current());

  private:
    const Connection* connection_;
    bool open_ = true;
};

}  // namespace hone::cache::sqlite
