// Opening: what is refused and left alone, permissions, read-only places, journals, migrations.
#include "cache/database.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "cache/trial_store.h"
#include "support.h"

using namespace hone::cache;
using namespace hone::cache::test;
namespace fs = std::filesystem;

namespace {

void make_cache(const fs::path& file, int trials = 3) {
    Cache cache = Cache::open(file);
    for (int i = 0; i < trials; ++i) cache.store(sample_trial(i));
}

int mode_of(const fs::path& file) {
    struct stat status {};
    return ::lstat(file.c_str(), &status) == 0 ? static_cast<int>(status.st_mode & 07777) : -1;
}

/// What a process leaves that was killed between the log's header and its first frame. Checksums as in
/// SQLite's "Database File Format", 4.2.
void leave_log_of_header_alone(const fs::path& file) {
    const std::array<std::uint32_t, 6> fields{0x377f0683, 3007000, 4096, 0, 0x11111111, 0x22222222};
    std::uint32_t first = 0;
    std::uint32_t second = 0;
    for (std::size_t i = 0; i < fields.size(); i += 2) {
        first += fields[i] + second;
        second += fields[i + 1] + first;
    }
    std::string header;
    for (const std::uint32_t word :
         {fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], first, second}) {
        for (int shift = 24; shift >= 0; shift -= 8) header += static_cast<char>(word >> shift & 0xFF);
    }
    write_file(with_suffix(file, "-wal"), header);
    write_file(with_suffix(file, "-shm"), std::string(32768, '\0'));
    for (const char* suffix : {"-wal", "-shm"}) ::chmod(with_suffix(file, suffix).c_str(), 0600);
}

}  // namespace

TEST_CASE("a new cache and its directories are private whatever the umask") {
    const TemporaryDirectory directory;
    const auto file = directory / "a/b/cache.db";
    for (const mode_t mask : {mode_t{0}, mode_t{0777}}) {
        fs::remove_all(directory / "a");
        CHECK(in_child([&] {
                  ::umask(mask);
                  Cache::open(file).store(sample_trial(1));
              }) == "");
        CHECK(mode_of(directory / "a") == 0700);
        CHECK(mode_of(directory / "a/b") == 0700);
        for (const char* suffix : {"", "-wal", "-shm"}) CHECK(mode_of(with_suffix(file, suffix)) == 0600);
    }
}

TEST_CASE("files and directories that others may write are refused and left alone") {
    const TemporaryDirectory directory;
    make_cache(directory / "cache.db");
    const auto expect = [&](const char* what) {
        INFO(what);
        const std::string before = listing(directory.path());
        for (const OpenMode mode : {OpenMode::read_write, OpenMode::read_only}) {
            CHECK(open_error(directory / "cache.db", mode) == "unsafe_permissions");
        }
        CHECK(listing(directory.path()) == before);
    };
    for (const mode_t mode : {mode_t{0620}, mode_t{0602}, mode_t{0666}}) {
        ::chmod((directory / "cache.db").c_str(), mode);
        expect("file");
    }
    ::chmod((directory / "cache.db").c_str(), 0600);
    for (const mode_t mode : {mode_t{0770}, mode_t{0707}, mode_t{0777}, mode_t{01777}}) {
        ::chmod(directory.path().c_str(), mode);
        expect("directory");
    }
    ::chmod(directory.path().c_str(), 0755);  // readable by others is fine
    CHECK(open_error(directory / "cache.db") == "");
}

TEST_CASE("a folder that is everybody's, as /tmp is, is not to be closed for a cache") {
    const TemporaryDirectory directory;
    const auto hint = [&](mode_t mode) -> std::string {
        ::chmod(directory.path().c_str(), mode);
        try {
            static_cast<void>(Cache::open(directory / "cache.db"));
        } catch (const CacheError& error) {
            return error.hint();
        }
        return "";
    };
    CHECK(hint(0777).find("chmod go-w") != std::string::npos);
    const std::string of_everybodys = hint(01777);
    CHECK(of_everybodys.find("chmod") == std::string::npos);
    CHECK(of_everybodys.find("a directory of your own, below '" + directory.path().string() + "'") !=
          std::string::npos);
}

TEST_CASE("links are refused: locks and the write-ahead log go by the file's name") {
    const TemporaryDirectory directory;
    make_cache(directory / "real.db");
    fs::create_symlink(directory / "real.db", directory / "symbolic.db");
    fs::create_symlink(directory / "nowhere.db", directory / "dangling.db");
    CHECK(open_error(directory / "symbolic.db") == "unsafe_permissions");
    CHECK(open_error(directory / "symbolic.db", OpenMode::read_only) == "unsafe_permissions");
    CHECK(open_error(directory / "dangling.db") == "unsafe_permissions");
    CHECK_FALSE(fs::exists(directory / "nowhere.db"));
    fs::create_hard_link(directory / "real.db", directory / "hard.db");
    CHECK(open_error(directory / "hard.db") == "unsafe_permissions");
    CHECK(open_error(directory / "real.db") == "unsafe_permissions");
    fs::remove(directory / "hard.db");
    CHECK(open_error(directory / "real.db") == "");
}

// SQLite waited at such a pipe for good.
TEST_CASE("what lies beside the file under the names of its log and journal has to be a file") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    make_cache(file);
    for (const char* suffix : {"-wal", "-shm", "-journal"}) {
        const fs::path beside = with_suffix(file, suffix);
        fs::remove(beside);
        const auto expect_refusal = [&] {
            CHECK(open_error(file) == "unusable");
            CHECK(open_error(file, OpenMode::read_only) == "unusable");
            fs::remove(beside);
        };
        REQUIRE(::mkfifo(beside.c_str(), 0600) == 0);
        expect_refusal();
        fs::create_directory(beside);
        expect_refusal();
        fs::create_symlink(directory / "elsewhere", beside);
        expect_refusal();
    }
    CHECK(open_error(file) == "");
    CHECK_FALSE(fs::exists(directory / "elsewhere"));
}

TEST_CASE("a directory that is reached through a link is fine") {
    const TemporaryDirectory directory;
    fs::create_directory(directory / "real");
    ::chmod((directory / "real").c_str(), 0700);
    fs::create_directory_symlink(directory / "real", directory / "link");
    make_cache(directory / "link/cache.db");
    CHECK(Cache::open(directory / "real/cache.db").trials().size() == 3);
    CHECK(Cache::open(directory / "link/cache.db").path() == directory / "real/cache.db");
}

TEST_CASE("what is not a file is refused") {
    const TemporaryDirectory directory;
    fs::create_directory(directory / "directory");
    REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
    CHECK(open_error(directory / "directory") == "unusable");
    CHECK(open_error(directory / "fifo") == "not_a_cache");
    CHECK(open_error(directory / "fifo", OpenMode::read_only) == "not_a_cache");
    CHECK(open_error("/dev/null") != "");
    CHECK(open_error("/dev/full", OpenMode::read_only) == "not_a_cache");
    CHECK(open_error("") == "unusable");
    CHECK(open_error(directory / "fifo/below/it") != "");
}

TEST_CASE("somebody else's file or directory is refused, root's may be read") {
    if (::geteuid() != 0) return;  // takes root to give files away
    const TemporaryDirectory directory;
    make_cache(directory / "cache.db");
    REQUIRE(::chown((directory / "cache.db").c_str(), 12345, 12345) == 0);
    CHECK(open_error(directory / "cache.db") == "unsafe_permissions");
    CHECK(open_error(directory / "cache.db", OpenMode::read_only) == "unsafe_permissions");
    REQUIRE(::chown((directory / "cache.db").c_str(), 0, 0) == 0);
    REQUIRE(::chown(directory.path().c_str(), 12345, 12345) == 0);
    CHECK(open_error(directory / "cache.db") == "unsafe_permissions");
    REQUIRE(::chown(directory.path().c_str(), 0, 0) == 0);
    ::chmod(directory.path().c_str(), 0755);
    for (const char* suffix : {"", "-wal", "-shm"})
        ::chmod(with_suffix(directory / "cache.db", suffix).c_str(), 0644);
    CHECK(as_ordinary_user([&] {
              const std::string before = listing(directory.path());
              require(open_error(directory / "cache.db") == "unsafe_permissions",
                      "root's file opened for writing");
              require(Cache::open(directory / "cache.db", OpenMode::read_only).trials().size() == 3,
                      "not readable");
              require(listing(directory.path()) == before, "something was touched");
          }) == "");
}

// The emptied log stays private when the file alone is made readable; all of the cache was left out for it.
TEST_CASE(
    "a file that its owner shares is read without its log when that is empty, and else says whose it is") {
    if (::geteuid() != 0) return;  // takes root to become somebody else
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    make_cache(file);
    ::chmod(directory.path().c_str(), 0755);
    const auto error = [&] {
        try {
            return std::to_string(Cache::open(file, OpenMode::read_only).trials().size());
        } catch (const CacheError& refused) {
            return refused.what() + ("; " + refused.hint());
        }
    };
    CHECK(as_ordinary_user([&] {
              require(error().starts_with(file.string() + ": may not be read by this user"), error().c_str());
          }) == "");
    ::chmod(file.c_str(), 0644);
    CHECK(as_ordinary_user([&] { require(error() == "3", error().c_str()); }) == "");
    const Cache writer = Cache::open(file);
    run_sql(file, "UPDATE trial SET imported = 1");
    ::chmod(with_suffix(file, "-wal").c_str(), 0600);
    CHECK(as_ordinary_user([&] {
              require(error().starts_with(file.string() + "-wal: may not be read by this user"),
                      error().c_str());
          }) == "");
}

TEST_CASE("foreign and newer files are refused and left alone, byte for byte") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    const auto expect = [&](const std::string& kind) {
        const std::string before = listing(directory.path());
        for (const OpenMode mode : {OpenMode::read_write, OpenMode::read_only})
            CHECK(open_error(file, mode) == kind);
        CHECK(listing(directory.path()) == before);
        fs::remove(file);
    };
    for (const std::string content : {"hello", "{\"schema\": \"hone.tuned/1\"}", "SQLite format 2", "MZ"}) {
        write_file(file, content);
        expect("not_a_cache");
    }
    write_file(file, std::string(8192, '\0'));
    expect("not_a_cache");

    run_sql(file, "CREATE TABLE theirs (a)");  // no application id at all
    ::chmod(file.c_str(), 0600);
    expect("not_a_cache");
    run_sql(file, "PRAGMA application_id = 1; CREATE TABLE theirs (a)");
    ::chmod(file.c_str(), 0600);
    expect("not_a_cache");

    make_cache(file);
    run_sql(file, "PRAGMA journal_mode = DELETE; PRAGMA user_version = 99");
    expect("newer_schema");
}

TEST_CASE("a foreign database that is in use keeps its write-ahead log") {
    const TemporaryDirectory directory;
    const auto file = directory / "theirs.db";
    run_sql(file, "PRAGMA application_id = 77; PRAGMA journal_mode = WAL; CREATE TABLE theirs (a)");
    // A log that nobody has recovered yet, as after a crash.
    write_file(with_suffix(file, "-wal"), std::string(4152, 'w'));
    ::chmod(file.c_str(), 0600);
    const std::string before = listing(directory.path());
    CHECK(open_error(file) == "not_a_cache");
    CHECK(open_error(file, OpenMode::read_only) == "not_a_cache");
    CHECK(listing(directory.path()) == before);
}

TEST_CASE("a file without the tables it should have is damaged, not a reason to crash") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    make_cache(file);
    run_sql(file, "DROP VIEW winner; DROP VIEW ranked_winner; DROP TABLE trial");
    CHECK(open_error(file) == "damaged");
    CHECK(open_error(file, OpenMode::read_only) == "damaged");
}

TEST_CASE("a truncated file is found when it is opened") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    make_cache(file, 200);
    fs::remove(with_suffix(file, "-wal"));
    fs::remove(with_suffix(file, "-shm"));
    fs::resize_file(file, fs::file_size(file) / 2);
    const std::string content = read_file(file);
    CHECK(open_error(file) == "damaged");
    CHECK(open_error(file, OpenMode::read_only) == "damaged");
    CHECK(read_file(file) == content);  // nothing is repaired, renamed or deleted unasked
    CHECK_FALSE(fs::is_empty(file));
}

TEST_CASE("reading only writes nothing at all") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    make_cache(file);
    const auto read_all = [&] {
        Cache cache = Cache::open(file, OpenMode::read_only);
        CHECK(cache.trials().size() == 3);
        CHECK(cache.winners().size() == 1);
        CHECK(cache.stats().trials == 3);
        CHECK(cache.verify().ok);
        CHECK_FALSE(cache.image(sample_image_key(1)));
    };
    std::string before = listing(directory.path());
    read_all();
    CHECK(listing(directory.path()) == before);
    fs::remove(with_suffix(file, "-wal"));  // as after a copy, or after the sqlite3 program
    fs::remove(with_suffix(file, "-shm"));
    before = listing(directory.path());
    read_all();
    CHECK(listing(directory.path()) == before);
}

TEST_CASE("a reader without locks notices a writer and reads again") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    make_cache(file);
    fs::remove(with_suffix(file, "-wal"));
    fs::remove(with_suffix(file, "-shm"));
    const Cache reader = Cache::open(file, OpenMode::read_only);
    CHECK(reader.trials().size() == 3);
    Cache writer = Cache::open(file);
    writer.store(sample_trial(10));
    CHECK(reader.trials().size() == 4);
    writer.store(sample_trial(11));
    CHECK(reader.trials().size() == 5);
}

TEST_CASE("an unfinished write-ahead log is read, with its index or without") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    const auto copy = directory / "copy.db";
    Cache writer = Cache::open(file);
    for (int i = 0; i < 3; ++i) writer.store(sample_trial(i));  // all of it still in the log
    CHECK(Cache::open(file, OpenMode::read_only).trials().size() == 3);
    for (const char* suffix : {"", "-wal", "-shm"})
        fs::copy_file(with_suffix(file, suffix), with_suffix(copy, suffix));
    for (const char* suffix : {"", "-wal", "-shm"}) ::chmod(with_suffix(copy, suffix).c_str(), 0600);
    CHECK(Cache::open(copy, OpenMode::read_only).trials().size() == 3);
    fs::remove(with_suffix(copy, "-shm"));
    CHECK(Cache::open(copy, OpenMode::read_only).trials().size() == 3);
    CHECK_FALSE(fs::exists(with_suffix(copy, "-shm")));
    CHECK(Cache::open(copy).trials().size() == 3);
}

TEST_CASE("a write-ahead log of a header alone hides nothing from readers, and they leave it alone") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    make_cache(file);
    leave_log_of_header_alone(file);
    const std::string before = listing(directory.path());
    const Cache reader = Cache::open(file, OpenMode::read_only);  // by SQLite alone: busy, after ten seconds
    CHECK(reader.trials().size() == 3);
    CHECK(reader.winners().size() == 1);
    CHECK(listing(directory.path()) == before);
    Cache::open(file).store(sample_trial(10));
    CHECK(reader.trials().size() == 4);
}

TEST_CASE("a read-only directory can be read and not written") {
    CHECK(as_ordinary_user([] {
              const TemporaryDirectory directory;
              for (const bool with_log : {true, false}) {
                  const auto folder = directory / (with_log ? "a" : "b");
                  const auto file = folder / "cache.db";
                  make_cache(file);
                  if (!with_log) fs::remove(with_suffix(file, "-wal"));
                  if (!with_log) fs::remove(with_suffix(file, "-shm"));
                  for (const auto& entry : fs::directory_iterator(folder))
                      ::chmod(entry.path().c_str(), 0400);
                  ::chmod(folder.c_str(), 0500);
                  const std::string before = listing(folder);
                  require(Cache::open(file, OpenMode::read_only).trials().size() == 3, "cannot be read");
                  require(open_error(file) == "read_only", "opened for writing: " + open_error(file));
                  require(open_error(folder / "new.db") == "read_only",
                          "new file: " + open_error(folder / "new.db"));
                  require(open_error(folder / "new/new.db") == "read_only", "new directory");
                  require(open_error(folder / "new.db", OpenMode::read_only) == "unusable", "missing file");
                  require(listing(folder) == before, "something was touched");
                  ::chmod(file.c_str(), 0000);
                  require(open_error(file, OpenMode::read_only) == "read_only",
                          "unreadable: " + open_error(file, OpenMode::read_only));
                  ::chmod(folder.c_str(), 0700);
              }
          }) == "");
}

TEST_CASE("a local disk has a write-ahead log, a network file system a rollback journal") {
    const TemporaryDirectory directory;
    const Database local =
        open_database(directory / "local.db", OpenMode::read_write, {.network_file_system = false});
    CHECK(local.connection.text("PRAGMA journal_mode") == "wal");
    CHECK(local.connection.integer("PRAGMA synchronous") == 1);  // NORMAL
    const Database far =
        open_database(directory / "far.db", OpenMode::read_write, {.network_file_system = true});
    CHECK(far.connection.text("PRAGMA journal_mode") == "truncate");
    CHECK(far.connection.integer("PRAGMA synchronous") == 2);  // FULL
    CHECK_FALSE(fs::exists(directory / "far.db-shm"));
}

TEST_CASE(
    "a cache that is carried to a network file system and back changes its journal and keeps its rows") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    make_cache(file);
    for (const bool network : {true, false, true}) {
        const Database database = open_database(file, OpenMode::read_write, {.network_file_system = network});
        CHECK(database.connection.text("PRAGMA journal_mode") == (network ? "truncate" : "wal"));
        CHECK(select_trials(database.connection, {}).trials.size() == 3);
        const Database second = open_database(file, OpenMode::read_write, {.network_file_system = network});
        const Database reader = open_database(file, OpenMode::read_only, {.network_file_system = network});
        CHECK(select_trials(reader.connection, {}).trials.size() == 3);
    }
}

TEST_CASE("an older schema is brought up to date in one step, after a backup") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    make_cache(file);
    const std::array<Migration, 5> newer{{migrations()[0],
                                          migrations()[1],
                                          migrations()[2],
                                          {.to = 4, .sql = "CREATE TABLE note (text TEXT) STRICT"},
                                          {.to = 5, .sql = "INSERT INTO note VALUES ('hello')"}}};
    const std::string before = listing(directory.path());
    {
        const Database reader = open_database(file, OpenMode::read_only, {.schema = newer});
        CHECK(reader.connection.text("SELECT text FROM note") == "hello");  // in memory
        CHECK(select_trials(reader.connection, {}).trials.size() == 3);
    }
    CHECK(listing(directory.path()) == before);
    {
        const Database database = open_database(file, OpenMode::read_write, {.schema = newer});
        CHECK(database.connection.integer("PRAGMA user_version") == 5);
        CHECK(database.connection.text("SELECT text FROM note") == "hello");
        CHECK(select_trials(database.connection, {}).trials.size() == 3);
    }
    CHECK(open_error(file) == "newer_schema");  // this build does not go back
    int backups = 0;
    for (const auto& entry : fs::directory_iterator(directory.path())) {
        if (entry.path().extension() != ".backup") continue;
        ++backups;
        CHECK(mode_of(entry.path()) == 0600);
        CHECK(Cache::open(entry.path()).trials().size() == 3);
        CHECK(Cache::open(entry.path()).stats().schema_version == 3);
    }
    CHECK(backups == 1);
}

TEST_CASE("a backup that finds no room leaves nothing of itself") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    make_cache(file);
    constexpr rlim_t most_bytes = 40'000;  // enough for the log's index
    REQUIRE(fs::file_size(file) > most_bytes);
    const std::array<Migration, 4> newer{{migrations()[0],
                                          migrations()[1],
                                          migrations()[2],
                                          {.to = 4, .sql = "CREATE TABLE note (text TEXT) STRICT"}}};
    CHECK(in_child([&] {
              std::signal(SIGXFSZ, SIG_IGN);
              const rlimit small{most_bytes, most_bytes};
              require(setrlimit(RLIMIT_FSIZE, &small) == 0, "no limit");
              const auto open = [&] { (void)open_database(file, OpenMode::read_write, {.schema = newer}); };
              require(kind_of_error(open) == "full", "it found room");
          }) == "");
    for (const auto& entry : fs::directory_iterator(directory.path()))
        CHECK(entry.path().filename().string().find(".backup") == std::string::npos);
    CHECK(Cache::open(file).trials().size() == 3);
}

TEST_CASE("a migration that fails leaves the cache as it was") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    make_cache(file);
    const std::array<Migration, 5> broken{
        {migrations()[0],
         migrations()[1],
         migrations()[2],
         {.to = 4, .sql = "CREATE TABLE note (text TEXT); DELETE FROM trial"},
         {.to = 5, .sql = "INSERT INTO missing VALUES (1)"}}};
    CHECK(kind_of_error([&] { (void)open_database(file, OpenMode::read_write, {.schema = broken}); }) ==
          "damaged");
    const Cache cache = Cache::open(file);
    CHECK(cache.trials().size() == 3);
    CHECK(cache.stats().schema_version == 3);
    CHECK(cache.verify().ok);
}

TEST_CASE("an empty file becomes a cache, and reads as an empty one until then") {
    const TemporaryDirectory directory;
    write_file(directory / "cache.db", "");
    CHECK(Cache::open(directory / "cache.db", OpenMode::read_only).trials().empty());
    CHECK(fs::is_empty(directory / "cache.db"));
    make_cache(directory / "cache.db");
    CHECK(Cache::open(directory / "cache.db", OpenMode::read_only).trials().size() == 3);
}
