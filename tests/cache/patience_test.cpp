#include "cache/sqlite/patience.h"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/cache/support.h"

using namespace hone::cache::test;
using hone::cache::sqlite::Patience;
using namespace std::chrono_literals;

namespace {

/// Waits as often as it may, up to `most`, and lets `between` do something after each time.
template <class Between>
int waits(Patience& patience, int most, Between&& between) {
    int tries = 0;
    while (tries < most && patience.wait(tries)) {
        ++tries;
        between();
    }
    return tries;
}

}  // namespace

TEST_CASE("a writer waits for others while they write, and not for one that stands still") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    std::ofstream(file) << "database";
    for (const char* suffix : {"", "-wal", "-journal"}) {
        CAPTURE(suffix);
        Patience patience(file, 30ms);
        std::ofstream log(file.string() + suffix, std::ios::app);
        CHECK(waits(patience, 20, [&] { log << "page" << std::flush; }) == 20);
        CHECK(waits(patience, 1000, [] {}) < 1000);
    }
}

TEST_CASE("a lock that is never free is given up, however much is written") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    std::ofstream log(file);
    Patience patience(file, 1h, 50ms);
    CHECK(waits(patience, 1000, [&] { log << "page" << std::flush; }) < 1000);
    CHECK(patience.wait(0));  // of another lock
}
