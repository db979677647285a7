// Issue 16, fault 8: a database whose table is a view that never ends is refused at once, and so is every
// other object that Hone did not make.
#include <doctest/doctest.h>

#include <chrono>

#include "cache/file_system.h"
#include "cache/sqlite/connection.h"
#include "tests/cache/support.h"
#include "tests/cli/program.h"

using namespace hone::cache;
using namespace hone::cache::test;
namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

/// Replaces the table `trial` of a real cache by a view of the same columns.
void make_endless(const fs::path& file) {
    (void)Cache::open(file);
    run_sql(file, "CREATE TABLE columns AS SELECT * FROM trial");
    run_sql(file,
            "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name IN "
            "('trial', 'winner', 'ranked_winner') OR tbl_name = 'trial'; PRAGMA writable_schema = OFF");
    run_sql(file,
            "PRAGMA writable_schema = ON;"
            "CREATE VIEW trial AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
            " SELECT columns.*, x FROM c LEFT JOIN columns");
}

}  // namespace

TEST_CASE("a table that is an endless view is refused at once by every command") {
    hone::test::Sandbox box;
    const fs::path evil = box.path("evil/cache.db");
    const TemporaryDirectory directory;
    make_endless(directory / "cache.db");
    fs::create_directory(evil.parent_path());
    fs::permissions(evil.parent_path(), fs::perms::owner_all);
    fs::copy_file(directory / "cache.db", evil);
    const auto start = Clock::now();
    CHECK(box.run({"merge", evil.string()}).code == 5);
    box.set("HONE_SITE_CACHE", evil.string());
    for (const hone::test::Sandbox::Words& words :
         {hone::test::Sandbox::Words{"list"},
          {"explain", "rmsnorm", "dtype=bf16", "hidden=4096", "rows=16"}}) {
        const hone::test::Ended ended = box.run(words);
        CHECK(ended.code == 0);
        CHECK(ended.err.find("trial") != std::string::npos);
    }
    box.set("HONE_CACHE", evil.string());
    const hone::test::Ended verified = box.run({"cache", "verify"});
    CHECK(verified.code == 5);
    CHECK(verified.err.find("Hone") != std::string::npos);
    CHECK(Clock::now() - start < std::chrono::seconds(20));
}

TEST_CASE("a query that has no end is stopped: the backstop behind the look at the schema") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    (void)Cache::open(file);
    const sqlite::Connection connection = sqlite::Connection::open(file, sqlite::Access::read_write);
    CHECK(kind_of_error([&] {
              (void)connection.integer(
                  "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c");
          }) == "damaged");
    CHECK(connection.integer("SELECT count(*) FROM trial") == 0);  // and the connection lives on
}
