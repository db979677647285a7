// A disk that loses what was written and not synced: after each power cut the cache is sound, and the trials
// in it are those that docs/cache-format.md promises. In a write-ahead log (synchronous NORMAL) the last
// stores may be gone, from the end and never from the middle, and none that came before a sync of the log. In
// a rollback journal (synchronous FULL) every store that has returned is there.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cache/database.h"
#include "cache/maintenance.h"
#include "cache/trial_store.h"
#include "tests/cache/support.h"
#include "tests/campaign/lossy_disk.h"
#include "tests/campaign/results.h"

using namespace hone::cache;
using namespace hone::cache::test;
using hone::campaign::LossyDisk;
namespace fs = std::filesystem;

namespace {

/// What one run until a power cut has stored, in order, and how much of it must be there afterwards.
struct Stored {
    std::vector<std::string> identities;
    std::size_t durable = 0;
};

std::set<std::string> identities_in(const fs::path& file, OpenMode mode) {
    const Cache cache = Cache::open(file, mode);
    const VerifyReport report = cache.verify();
    CHECK_MESSAGE(report.ok, (report.problems.empty() ? std::string() : report.problems[0]));
    std::set<std::string> found;
    for (const Trial& trial : cache.trials()) found.insert(identity(trial));
    return found;
}

/// What a reader finds who may not write: the same, or a file of which nothing is there yet.
void check_reader(const fs::path& file, bool may_be_empty) {
    std::string kind;
    std::size_t found = 0;
    kind = kind_of_error([&] { found = identities_in(file, OpenMode::read_only).size(); });
    const bool tells = kind.empty() || kind == "read_only";  // its log must be recovered by a writer
    CHECK_MESSAGE(tells, kind);
    if (kind.empty() && !may_be_empty) CHECK(found > 0);
}

/// How many of the last run's stores are there; fails when one is missing before one that is there, or when
/// one is missing that was durable.
std::size_t check_prefix(const Stored& stored, const std::set<std::string>& found) {
    std::size_t kept = 0;
    while (kept < stored.identities.size() && found.contains(stored.identities[kept])) ++kept;
    for (std::size_t i = kept; i < stored.identities.size(); ++i)
        CHECK_FALSE(found.contains(stored.identities[i]));
    CHECK(kept >= stored.durable);
    return kept;
}

/// A cache with a write-ahead log: stores trials and images, and cleans, until the power goes.
Stored store_until_cut(LossyDisk& disk, const fs::path& file, int first) {
    Stored stored;
    disk.on_sync([&](const std::string& name) {
        if (name.ends_with("-wal")) stored.durable = stored.identities.size();
    });
    try {
        Cache cache = Cache::open(file);
        cache.set_image_limit(400'000);
        for (int i = first; !disk.power_is_cut(); ++i) {
            cache.store(sample_trial(i));
            stored.identities.push_back(identity(sample_trial(i)));
            cache.begin({.key = sample_trial(i).key, .candidate = "x", .pid = 1, .started_at = 1});
            if (i % 2 == 0) cache.store_image(sample_image_key(i), sample_image(i, 100'000));
            if (i % 17 == 0) (void)cache.gc();
            cache.end({.key = sample_trial(i).key, .candidate = "x", .pid = 1});
        }
    } catch (const CacheError&) {
        REQUIRE(disk.power_is_cut());
    }
    disk.on_sync({});
    return stored;
}

/// The same on what counts as a network file system: a store that has returned is durable.
Stored store_with_journal(LossyDisk& disk, const fs::path& file, int first) {
    Stored stored;
    try {
        const Database database = open_database(file, OpenMode::read_write, {.network_file_system = true});
        for (int i = first; !disk.power_is_cut(); ++i) {
            const std::vector<Trial> trials{sample_trial(i)};
            (void)insert_trials(database.connection, trials);
            stored.identities.push_back(identity(sample_trial(i)));
            stored.durable = stored.identities.size();
        }
    } catch (const CacheError&) {
        REQUIRE(disk.power_is_cut());
    }
    return stored;
}

struct Cuts {
    int count = 0;
    std::size_t stored = 0;
    std::size_t lost = 0;
    std::int64_t dropped = 0;
};

/// Cuts the power `count` times, ten times a cache, and checks what is left each time.
template <class Store>
Cuts cut_power(int count, unsigned operations, unsigned seed, Store store) {
    const TemporaryDirectory directory;
    std::mt19937 random(seed);
    LossyDisk disk;
    Cuts cuts;
    std::set<std::string> before;
    fs::path file;
    for (; cuts.count < count; ++cuts.count) {
        if (cuts.count % 10 == 0) {
            file = directory / ("cache" + std::to_string(cuts.count) + ".db");
            before.clear();
        }
        CAPTURE(cuts.count);
        disk.cut_power_at(1 + random() % (cuts.count % 10 == 0 ? 60 : operations));
        const Stored stored = store(disk, file, cuts.count * 100'000);
        disk.leave_remains(random);
        check_reader(file, before.empty() && stored.durable == 0);
        const std::set<std::string> found = identities_in(file, OpenMode::read_write);
        for (const std::string& one : before) CHECK(found.contains(one));
        cuts.stored += stored.identities.size();
        cuts.lost += stored.identities.size() - check_prefix(stored, found);
        before = found;
        disk.leave_remains(random);  // the reader's and the writer's log go as they may
        before = identities_in(file, OpenMode::read_write);
    }
    cuts.dropped = disk.pieces_dropped();
    return cuts;
}

void tell(const std::string& what, const Cuts& cuts) {
    MESSAGE(what << ": " << cuts.count << " power cuts, " << cuts.dropped << " pieces of 512 bytes lost, "
                 << cuts.stored << " stores had returned, " << cuts.lost << " of them gone");
    hone::campaign::report(3, "campaign.power_cut_test", what, cuts.count);
}

}  // namespace

TEST_CASE(
    "a power cut leaves a write-ahead log whose stores are gone from the end only, and none before a sync") {
    const Cuts cuts = cut_power(hone::campaign::scaled(40, 500), 4000, 5, store_until_cut);
    CHECK(cuts.dropped > 0);
    CHECK(cuts.lost > 0);  // or the disk has forgotten nothing, and the test shows nothing
    tell("power cuts with a write-ahead log", cuts);
}

TEST_CASE("a power cut takes no store that has returned where the journal is synced each time") {
    const Cuts cuts = cut_power(hone::campaign::scaled(20, 500), 600, 6, store_with_journal);
    CHECK(cuts.dropped > 0);
    CHECK(cuts.stored > 0);
    CHECK(cuts.lost == 0);
    tell("power cuts with a rollback journal", cuts);
}
