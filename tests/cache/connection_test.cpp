#include "cache/sqlite/connection.h"

#include <doctest/doctest.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include "cache/file_system.h"
#include "support.h"

using namespace hone::cache;
using namespace hone::cache::test;
using sqlite::Access;
using sqlite::Connection;
using sqlite::Statement;
using sqlite::Transaction;

namespace {

Connection new_database(const TemporaryDirectory& directory) {
    create_private_file(directory / "x.db");
    Connection connection = Connection::open(directory / "x.db", Access::read_write);
    connection.execute("CREATE TABLE t (a INTEGER NOT NULL, b TEXT) STRICT");
    return connection;
}

}  // namespace

TEST_CASE("a transaction that is not committed leaves nothing") {
    const TemporaryDirectory directory;
    const Connection connection = new_database(directory);
    {
        const Transaction transaction(connection, Transaction::Kind::write);
        connection.execute("INSERT INTO t VALUES (1, 'x')");
    }
    CHECK(connection.integer("SELECT count(*) FROM t") == 0);
    {
        Transaction transaction(connection, Transaction::Kind::write);
        connection.execute("INSERT INTO t VALUES (1, 'x')");
        transaction.commit();
    }
    CHECK(connection.integer("SELECT count(*) FROM t") == 1);
}

TEST_CASE("values are bound and read in order") {
    const TemporaryDirectory directory;
    const Connection connection = new_database(directory);
    Statement insert(connection, "INSERT INTO t VALUES (?, ?)");
    for (int i = 0; i < 3; ++i) {
        insert.bind(std::int64_t{i} << 40, std::string("row ") + std::to_string(i));
        insert.run();
    }
    Statement select(connection, "SELECT b, a FROM t ORDER BY a");
    for (int i = 0; i < 3; ++i) {
        REQUIRE(select.step());
        CHECK(select.text() == "row " + std::to_string(i));
        CHECK(select.integer() == std::int64_t{i} << 40);
    }
    CHECK_FALSE(select.step());
}

TEST_CASE("a statement that is kept is as new each time, and holds no lock when it is not in use") {
    const TemporaryDirectory directory;
    Connection connection = new_database(directory);
    const auto prepared = [&] {
        int count = 0;
        for (sqlite3_stmt* next = sqlite3_next_stmt(connection.get(), nullptr); next != nullptr;
             next = sqlite3_next_stmt(connection.get(), next))
            ++count;
        return count;
    };
    const auto insert = [&](std::int64_t a) {
        Statement(Statement::Kept{}, connection, "INSERT INTO t (a) VALUES (?)").bind(a).run();
    };
    insert(1);
    insert(2);
    CHECK(prepared() == 1);
    CHECK_THROWS_AS(Statement(Statement::Kept{}, connection, "INSERT INTO t (a) VALUES (?)").run(),
                    CacheError);  // nothing is bound any more
    insert(3);
    CHECK(prepared() == 1);
    {
        // Rows that nobody has read to their end, by two of the same text.
        const std::string all = "SELECT a FROM t ORDER BY a";
        Statement first(Statement::Kept{}, connection, all);
        Statement second(Statement::Kept{}, connection, all);
        REQUIRE(first.step());
        REQUIRE(second.step());
        REQUIRE(second.step());
        CHECK(first.integer() == 1);
        CHECK(second.integer() == 2);
    }
    CHECK(prepared() == 2);
    const Connection other = Connection::open(directory / "x.db", Access::read_write);
    other.execute("ALTER TABLE t ADD COLUMN c INTEGER");  // no reader is in the way
    insert(4);
    CHECK(other.integer("SELECT count(*) FROM t") == 4);
    connection = Connection::open(directory / "x.db", Access::read_write);  // the first one closes
    insert(5);
    CHECK(prepared() == 1);
}

TEST_CASE("empty texts and blobs are empty, not NULL") {
    const Connection connection = Connection::open_in_memory();
    Statement select(connection, "SELECT typeof(?), typeof(?)");
    select.bind(std::string_view(), std::span<const std::byte>());
    REQUIRE(select.step());
    CHECK(select.text() == "text");
    CHECK(select.text() == "blob");
}

TEST_CASE("a writer that has waited long enough is told that the database is busy") {
    const TemporaryDirectory directory;
    const Connection holder = new_database(directory);
    const Transaction held(holder, Transaction::Kind::write);
    const Connection other = Connection::open(directory / "x.db", Access::read_write);
    sqlite3_busy_timeout(other.get(), 20);
    CHECK(kind_of_error([&] { const Transaction waiting(other, Transaction::Kind::write); }) == "busy");
}

TEST_CASE("an error names the file, the reason and the line that met it") {
    const TemporaryDirectory directory;
    const Connection connection = new_database(directory);
    try {
        connection.execute("SELECT * FROM missing");
        FAIL("no error");
    } catch (const CacheError& error) {
        const std::string what = error.what();
        CHECK(what.find("x.db") != std::string::npos);
        CHECK(what.find("no such table: missing") != std::string::npos);
        CHECK(what.find("connection_test.cpp:") != std::string::npos);
        CHECK(error.kind() == CacheError::Kind::damaged);
    }
}

TEST_CASE("where this process may open no more files, the hint says so, and not to take another file") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    write_file(file, "");
    CHECK(in_child([&] {
              const rlimit none{0, 0};
              require(setrlimit(RLIMIT_NOFILE, &none) == 0, "no limit");
              try {
                  Connection::open(file, Access::read_write).execute("CREATE TABLE t (a)");
              } catch (const CacheError& error) {
                  require(error.hint().find("ulimit -n") != std::string::npos, error.hint());
                  return;
              }
              require(false, "it was opened");
          }) == "");
}

TEST_CASE("no other file can be attached, and the schema cannot be written by hand") {
    const TemporaryDirectory directory;
    const Connection connection = new_database(directory);
    CHECK(kind_of_error([&] { connection.execute("ATTACH ':memory:' AS other"); }) != "");
    CHECK(kind_of_error(
              [&] { connection.execute("PRAGMA writable_schema = ON; DELETE FROM sqlite_schema"); }) != "");
    CHECK(connection.integer("PRAGMA mmap_size") == 0);
    CHECK(connection.integer("PRAGMA trusted_schema") == 0);
    CHECK(connection.integer("PRAGMA cell_size_check") == 1);
}

TEST_CASE("a path with characters that mean something in a URI is opened as it is written") {
    const TemporaryDirectory directory;
    for (const char* name : {"a?mode=memory", "b#c", "100%25", "d e&f=g"}) {
        create_private_file(directory / name);
        Connection::open(directory / name, Access::read_write).execute("CREATE TABLE t (a INTEGER)");
        CHECK(read_file(directory / name).starts_with("SQLite format 3"));
    }
}
