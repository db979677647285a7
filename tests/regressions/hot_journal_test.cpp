// Issue 16, fault 1: what a killed writer leaves is read at once, with every committed row, by a process that
// may only read, in a folder that nobody may write.
#include <doctest/doctest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "cache/file_system.h"
#include "tests/cache/support.h"

using namespace hone::cache;
using namespace hone::cache::test;
namespace fs = std::filesystem;

namespace {

constexpr int committed = 40;

void fill(const fs::path& file) {
    Cache cache = Cache::open(file);
    for (int i = 0; i < committed; ++i) cache.store(sample_trial(i));
}

void remove_beside(const fs::path& file) {
    for (const char* suffix : {"-wal", "-shm", "-journal"}) fs::remove(with_suffix(file, suffix));
}

/// Runs SQL in a process that dies without closing anything.
void run_and_die(const fs::path& file, const std::string& sql) {
    const std::string trouble = in_child([&] {
        sqlite3* handle = nullptr;
        require(sqlite3_open(file.c_str(), &handle) == SQLITE_OK, "sqlite3_open");
        const int code = sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr);
        require(code == SQLITE_OK, sqlite3_errmsg(handle));
        ::_exit(7);
    });
    REQUIRE(trouble == " exit status 7");
}

/// Milliseconds that a read-only open with its query takes: the best of three, since this machine has other
/// work.
double milliseconds_to_read(const fs::path& file, std::size_t expected) {
    using Clock = std::chrono::steady_clock;
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
        const auto start = Clock::now();
        const std::size_t found = Cache::open(file, OpenMode::read_only).trials().size();
        best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
        require(found == expected, "read " + std::to_string(found) + " trials");
    }
    return best;
}

/// Reads as a user without rights, in a folder and of files that nobody may write, and leaves all as it was.
std::string read_in_read_only_folder(const fs::path& folder, const fs::path& file, std::size_t expected) {
    for (const auto& entry : fs::directory_iterator(folder)) ::chmod(entry.path().c_str(), 0444);
    ::chmod(folder.c_str(), 0555);
    const std::string before = listing(folder);
    const std::string trouble = as_ordinary_user([&] {
        const double ms = milliseconds_to_read(file, expected);
        require(ms < 100, "took " + std::to_string(ms) + " ms");
    });
    const bool untouched = listing(folder) == before;
    ::chmod(folder.c_str(), 0700);
    for (const auto& entry : fs::directory_iterator(folder)) ::chmod(entry.path().c_str(), 0600);
    return untouched ? trouble : "something was touched";
}

void check_readable(const TemporaryDirectory& directory, const fs::path& file, std::size_t expected) {
    const std::string before = listing(directory.path());
    CHECK(milliseconds_to_read(file, expected) < 100);
    CHECK(listing(directory.path()) == before);
    CHECK(read_in_read_only_folder(directory.path(), file, expected) == "");
    CHECK(Cache::open(file).trials().size() == expected);  // and its owner goes on
}

}  // namespace

TEST_CASE("a hot rollback journal is rolled back for readers, in memory") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    fill(file);
    run_sql(file, "PRAGMA journal_mode = DELETE");
    remove_beside(file);
    // A cache of one page: changed pages go to the file before the commit.
    run_and_die(file,
                "PRAGMA journal_mode = TRUNCATE; PRAGMA cache_size = 1; BEGIN IMMEDIATE;"
                "DELETE FROM trial WHERE rowid % 2 = 0; UPDATE trial SET detail = hex(zeroblob(3000));"
                "DELETE FROM trial");
    REQUIRE(version_of(with_suffix(file, "-journal")).size > 512);
    check_readable(directory, file, committed);
}

TEST_CASE("a write-ahead log with frames and without its index is read in a folder that nobody may write") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    fill(file);
    CHECK(in_child([&] {
              Cache cache = Cache::open(file);
              for (int i = committed; i < 2 * committed; ++i) cache.store(sample_trial(i));
              ::_exit(7);
          }) == " exit status 7");
    REQUIRE(version_of(with_suffix(file, "-wal")).size > 10'000);
    fs::remove(with_suffix(file, "-shm"));
    check_readable(directory, file, 2 * committed);
}

TEST_CASE("a write-ahead log whose header is torn does not hold readers up") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    fill(file);
    remove_beside(file);
    write_file(with_suffix(file, "-wal"), std::string(4152, 'w'));
    write_file(with_suffix(file, "-shm"), std::string(32768, '\0'));
    check_readable(directory, file, committed);
}

TEST_CASE("a cache that was killed at its creation reads as an empty one") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    write_file(file, "");
    check_readable(directory, file, 0);
    remove_beside(file);
    fs::remove(file);
    write_file(file, "");
    run_and_die(file,
                "PRAGMA cache_size = 1; BEGIN IMMEDIATE; CREATE TABLE a (x); CREATE TABLE b (x);"
                "INSERT INTO a VALUES (hex(zeroblob(30000)))");
    check_readable(directory, file, 0);
}

TEST_CASE("after a kill at any moment a read-only open gives all acknowledged trials at once") {
    const TemporaryDirectory directory;
    std::mt19937 random(16);
    double slowest_ms = 0;
    for (int kill = 0; kill < scaled(150); ++kill) {
        const auto file = directory / ("cache" + std::to_string(kill / 10) + ".db");
        int ends[2];
        REQUIRE(::pipe(ends) == 0);
        const pid_t child = ::fork();
        if (child == 0) {
            Cache cache = Cache::open(file);
            for (int i = kill * 10'000;; ++i) {
                cache.store(sample_trial(i));
                if (::write(ends[1], &i, sizeof i) != sizeof i) ::_exit(1);
            }
        }
        ::close(ends[1]);
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 15'000));
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        std::set<std::string> acknowledged;
        for (int i = 0; ::read(ends[0], &i, sizeof i) == sizeof i;)
            acknowledged.insert(identity(sample_trial(i)));
        ::close(ends[0]);
        if (!fs::exists(file)) continue;
        INFO("kill " << kill);
        const auto start = std::chrono::steady_clock::now();
        for (const Trial& trial : Cache::open(file, OpenMode::read_only).trials())
            acknowledged.erase(identity(trial));
        const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
        slowest_ms = std::max(slowest_ms, took.count());
        CHECK(acknowledged.empty());
    }
    MESSAGE("kills: " << scaled(150) << ", slowest open and read: " << slowest_ms << " ms");
    CHECK(slowest_ms < 2000);  // a machine with other work; SQLite by itself would take ten seconds
}
