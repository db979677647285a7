// Random damage: never a crash, never a wrong row, and either found or harmless.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "cache/file_system.h"
#include "support.h"

using namespace hone::cache;
using namespace hone::cache::test;
namespace fs = std::filesystem;

namespace {

constexpr int stored_trials = 60;
constexpr int stored_images = 4;

void fill(const fs::path& file) {
    Cache cache = Cache::open(file);
    std::vector<Trial> trials;
    for (int i = 0; i < stored_trials; ++i) trials.push_back(sample_trial(i));
    cache.store(trials);
    for (int i = 0; i < stored_images; ++i) cache.store_image(sample_image_key(i), sample_image(i, 5000));
}

std::string damaged(std::string content, std::mt19937& random) {
    const auto any = [&](std::size_t limit) {
        return static_cast<std::size_t>(random()) % std::max<std::size_t>(limit, 1);
    };
    switch (any(4)) {
        case 0: content.resize(any(content.size())); break;
        case 1: {
            const std::size_t at = any(content.size());
            std::fill_n(content.begin() + static_cast<std::ptrdiff_t>(at),
                        std::min<std::size_t>(512, content.size() - at), static_cast<char>(any(256)));
            break;
        }
        default:
            for (std::size_t flips = 1 + any(8); flips > 0; --flips) {
                char& byte =
                    content[any(any(2) == 0 ? 200 : content.size())];  // every second one in the header
                byte = static_cast<char>(byte ^ (1 << any(8)));
            }
    }
    return content;
}

struct Outcome {
    bool found = false;     ///< an error, or verify says so
    bool complete = false;  ///< every row and image is there
};

/// Throws when something comes back that was never stored.
Outcome look_at(const fs::path& file, OpenMode mode, const std::set<std::string>& identities) {
    Outcome outcome;
    const std::string kind = kind_of_error([&] {
        Cache cache = Cache::open(file, mode);
        const std::vector<Trial> trials = cache.trials();
        const std::vector<Trial> winners = cache.winners();
        for (const auto* rows : {&trials, &winners}) {
            for (const Trial& trial : *rows)
                require(identities.contains(identity(trial)), "a trial that was never stored");
        }
        outcome.complete = trials.size() == stored_trials;
        outcome.found = !cache.verify().ok;
        for (int i = 0; i < stored_images; ++i) {
            const auto image = cache.image(sample_image_key(i));
            if (image) require(image->cubin == sample_image(i, 5000).cubin, "a wrong image");
            outcome.complete = outcome.complete && image.has_value();
        }
        if (mode == OpenMode::read_write) {
            cache.store(sample_trial(1));
            cache.store_image(sample_image_key(1), sample_image(1, 5000));
            (void)cache.gc();
        }
    });
    if (!kind.empty()) outcome.found = true;
    return outcome;
}

}  // namespace

TEST_CASE("two thousand random damages never crash, never give wrong rows, and are found or harmless") {
    const TemporaryDirectory directory;
    const auto original = directory / "original.db";
    const auto file = directory / "cache.db";
    fill(original);
    const std::string content = read_file(original);
    std::set<std::string> identities;
    for (int i = 0; i < stored_trials; ++i) identities.insert(identity(sample_trial(i)));
    std::mt19937 random(20261121);
    int found = 0;
    for (int i = 0; i < scaled(2000); ++i) {
        for (const char* suffix : {"-wal", "-shm", "-journal"}) fs::remove(with_suffix(file, suffix));
        write_file(file, damaged(content, random));
        INFO("damage " << i);
        const Outcome reading = look_at(file, OpenMode::read_only, identities);
        CHECK((reading.found || reading.complete));
        found += reading.found;
        if (i % 3 != 0) continue;
        const Outcome writing = look_at(file, OpenMode::read_write, identities);
        CHECK((writing.found || writing.complete || fs::is_empty(file) || read_file(file).size() < 100 ||
               reading.found));
    }
    MESSAGE("found " << found << " of " << scaled(2000));
}

TEST_CASE("damage to the write-ahead log loses at most what was in it, and never gives wrong rows") {
    const TemporaryDirectory directory;
    const auto original = directory / "original.db";
    const auto file = directory / "cache.db";
    std::map<std::string, std::string> parts;
    std::set<std::string> identities;
    for (int i = 0; i < stored_trials; ++i) identities.insert(identity(sample_trial(i)));
    {
        Cache::open(original).store(sample_trial(0));
        CHECK(in_child([&] {
                  fill(original);
                  Cache open = Cache::open(original);
                  for (int i = 0; i < stored_trials; ++i) open.store(sample_trial(i));
                  open.begin({.key = sample_trial(1).key, .candidate = "x", .pid = 1, .started_at = 1});
                  ::_exit(7);  // nothing is closed: all of this stays in the log
              }) == " exit status 7");
        for (const char* suffix : {"", "-wal"}) parts[suffix] = read_file(with_suffix(original, suffix));
    }
    REQUIRE(parts["-wal"].size() > 100);
    std::mt19937 random(5);
    for (int i = 0; i < scaled(150); ++i) {
        for (const char* suffix : {"-wal", "-shm", "-journal"}) fs::remove(with_suffix(file, suffix));
        write_file(file, parts[""]);
        write_file(with_suffix(file, "-wal"), damaged(parts["-wal"], random));
        INFO("damage " << i);
        CHECK_NOTHROW(look_at(file, OpenMode::read_write, identities));
        const Cache cache = Cache::open(file);
        CHECK(cache.verify()
                  .ok);  // a log with a bad frame ends before it: the state is an older one, and sound
    }
}

// The damaged row stood in the way of the intact one for good.
TEST_CASE("a damaged row gets its content back when the trial is stored or merged again") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    const auto saved = directory / "saved.db";
    for (const fs::path& name : {file, saved}) fill(name);
    const std::vector<Trial> before = Cache::open(file).trials();
    run_sql(file,
            "UPDATE trial SET median_us = median_us * 2, chain = 'x', created_at = 0 WHERE rowid % 3 = 1");
    Cache cache = Cache::open(file);
    CHECK(cache.trials().size() == 40);
    CHECK(cache.store(std::vector{sample_trial(0)}) == 1);
    CHECK(cache.trials().size() == 41);
    CHECK(merge(cache, Cache::open(saved, OpenMode::read_only)).added == 19);
    CHECK(cache.trials() == before);  // in the order in which they were measured here
    CHECK(cache.verify().ok);
    CHECK(merge(cache, Cache::open(saved, OpenMode::read_only)).added == 0);
}

// Printing it took as much memory and as many lines of a terminal as the text had.
TEST_CASE("verify names a row with a key of any length and any bytes in a short line") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    fill(file);
    for (const char* change : {"trial SET identity", "image SET key"}) {
        run_sql(file, std::string("PRAGMA ignore_check_constraints = ON; UPDATE ") + change +
                          " = replace(hex(zeroblob(500000)), '00', char(27) || 'x') WHERE rowid = 1");
    }
    const VerifyReport report = Cache::open(file, OpenMode::read_only).verify();
    CHECK(report.problems.size() == 2);
    for (const std::string& problem : report.problems) {
        CHECK(problem.size() < 300);
        CHECK(problem.find('\x1b') == std::string::npos);
    }
}

TEST_CASE("verify says what it finds in pages line by line") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    fill(file);
    std::string content = read_file(file);
    constexpr std::size_t page_bytes = 4096;
    for (std::size_t place = content.size() - 5 * page_bytes; place < content.size(); place += page_bytes)
        content[place] = 'x';
    write_file(file, content);
    const VerifyReport report = Cache::open(file, OpenMode::read_only).verify();
    CHECK(report.problems.size() > 2);
    for (const std::string& problem : report.problems) CHECK(problem.find('\n') == std::string::npos);
}

// Such a row was read, and merging it threw what nobody catches, though verify called the cache sound.
TEST_CASE("a stored time that is no finite number is damage, also under the right identity") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    Trial trial = sample_trial(0);
    Cache::open(file).store(trial);
    trial.timing.p90_us = std::numeric_limits<double>::infinity();
    run_sql(file, "UPDATE trial SET p90_us = 9e999, identity = '" + identity(trial) + "'");
    const Cache cache = Cache::open(file, OpenMode::read_only);
    CHECK(cache.trials().empty());
    CHECK_FALSE(cache.verify().ok);
    Cache other = Cache::open(directory / "other.db");
    CHECK(merge(other, cache).added == 0);
}
