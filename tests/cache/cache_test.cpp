#include "cache/cache.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "support.h"

using namespace hone::cache;
using namespace hone::cache::test;

namespace {

Trial won(int i, Provenance provenance, std::int64_t created_at) {
    Trial trial = sample_trial(0);
    trial.candidate = "simple threads=" + std::to_string(i);
    trial.winner = true;
    trial.provenance = provenance;
    trial.created_at = created_at;
    return trial;
}

}  // namespace

TEST_CASE("a stored trial comes back exactly as it was, also with odd characters") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    Trial odd = sample_trial(1);
    odd.status = TrialStatus::compile_failed;
    odd.detail = std::string("error: 'x'; DROP TABLE trial; --\n\t\"\\\0 after zero \xff\xfe", 50);
    odd.timing = {};
    odd.energy_mj = 0.1 + 0.2;
    odd.key.gpu.mig_profile = "1g.10gb";
    cache.store(odd);
    CHECK(cache.trials() == std::vector<Trial>{odd});
    CHECK(Cache::open(directory / "cache.db").trials() == std::vector<Trial>{odd});
    const std::vector<std::string> problems = cache.verify().problems;
    REQUIRE(problems.size() == 1);  // kept, and told: no other machine would take it
    CHECK(problems[0].find("'detail'") != std::string::npos);
}

TEST_CASE("storing an equal trial again changes nothing") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    const std::vector<Trial> trials{sample_trial(1), sample_trial(2)};
    CHECK(cache.store(trials) == 2);
    CHECK(cache.store(trials) == 0);
    cache.store(trials.front());
    CHECK(cache.stats().trials == 2);
}

TEST_CASE("a batch is stored whole or not at all") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    std::vector<Trial> trials{sample_trial(1), sample_trial(2)};
    trials[1].timing.median_us = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_AS(cache.store(trials), std::invalid_argument);
    trials[1].timing.median_us = std::numeric_limits<double>::infinity();
    CHECK_THROWS_AS(cache.store(trials), std::invalid_argument);
    CHECK(cache.trials().empty());
}

TEST_CASE(
    "the winner is measured before replayed before predicted, then the last one stored, whatever its clock "
    "said") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    const auto only = [&] {
        const std::vector<Trial> winners = cache.winners();
        REQUIRE(winners.size() == 1);
        CHECK(cache.stats().winners == 1);
        return winners.front();
    };
    const Trial predicted = won(1, Provenance::predicted, 9000);
    const Trial replayed = won(2, Provenance::replayed, 8000);
    const Trial measured = won(3, Provenance::measured, 1000);
    cache.store(predicted);
    CHECK(only() == predicted);
    cache.store(replayed);
    CHECK(only() == replayed);
    cache.store(measured);
    CHECK(only() == measured);

    const Trial ahead = won(4, Provenance::measured, 900'000);
    const Trial later = won(5, Provenance::measured, 1001);
    cache.store(ahead);
    CHECK(only() == ahead);
    cache.store(later);
    CHECK(only() == later);
    CHECK(cache.past_winners().size() == 5);
    CHECK(cache.past_winners().back() == predicted);
}

TEST_CASE("a winner that was chosen in a model's step holds its place against those measured alone") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    Trial in_chain = won(1, Provenance::measured, 1000);
    in_chain.chain = "llama-3-8b tokens=8 kv=1024";
    cache.store(in_chain);
    cache.store(won(2, Provenance::measured, 2000));
    CHECK(cache.winners() == std::vector<Trial>{in_chain});
    CHECK(cache.stats().winners == 1);
    CHECK(cache.verify().ok);
    Trial again = won(3, Provenance::measured, 500);
    again.chain = "llama-3-8b tokens=8 kv=4096";
    cache.store(again);
    CHECK(cache.winners() == std::vector<Trial>{again});  // the last one of the two
    CHECK(cache.past_winners().back().chain.empty());
    Trial alone = again;
    alone.chain.clear();
    CHECK(identity(alone) != identity(again));
}

TEST_CASE("a trial that did not win, or did not end well, is no winner") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    Trial loser = sample_trial(1);
    loser.winner = false;
    Trial wrong = sample_trial(2);
    wrong.winner = true;
    wrong.status = TrialStatus::wrong_result;
    cache.store(std::vector<Trial>{loser, wrong});
    CHECK(cache.winners().empty());
    CHECK(cache.trials().size() == 2);
}

TEST_CASE("GPUs that differ in any field have winners of their own") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    std::vector<Trial> trials(7, won(1, Provenance::measured, 1));
    trials[1].key.gpu.name = "NVIDIA H200";
    trials[2].key.gpu.compute_major = 8;
    trials[3].key.gpu.compute_minor = 9;
    trials[4].key.gpu.sm_count = 114;
    trials[5].key.gpu.memory_clock_mhz = 1593;
    trials[6].key.gpu.mig_profile = "1g.10gb";
    cache.store(trials);
    CHECK(cache.winners().size() == 7);
    CHECK(cache.winners({.gpu = trials[6].key.gpu}) == std::vector<Trial>{trials[6]});
}

TEST_CASE("winners are sorted by key, whatever the order they came in") {
    const TemporaryDirectory directory;
    Cache forwards = Cache::open(directory / "a.db");
    Cache backwards = Cache::open(directory / "b.db");
    for (int i = 0; i < 60; ++i) {
        forwards.store(sample_trial(i));
        backwards.store(sample_trial(59 - i));
    }
    CHECK(forwards.winners() == backwards.winners());
    CHECK(forwards.winners().size() > 10);
}

TEST_CASE("a filter keeps what matches all of its fields") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    std::vector<Trial> trials;
    for (int i = 0; i < 35; ++i) trials.push_back(sample_trial(i));
    trials[0].key.family = "other";
    cache.store(trials);
    const auto count = [&](const Filter& filter) { return cache.trials(filter).size(); };
    CHECK(count({}) == 35);
    CHECK(count({.family = "other"}) == 1);
    CHECK(count({.static_fields = "hidden=64"}) == 5);
    CHECK(count({.dynamic_fields = "rows=1"}) == 7);
    CHECK(count({.family = "sample", .static_fields = "hidden=64", .dynamic_fields = "rows=1"}) == 0);
    CHECK(count({.family = "none' OR 1=1 --"}) == 0);
    GpuKey other = h100();
    other.sm_count = 1;
    CHECK(count({.gpu = h100(), .family = "sample"}) == 34);
    CHECK(count({.gpu = other}) == 0);
}

TEST_CASE("clear removes what matches and nothing else") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    std::vector<Trial> trials;
    for (int i = 0; i < 35; ++i) trials.push_back(sample_trial(i));
    cache.store(trials);
    cache.store_image(sample_image_key(1), sample_image(1));
    CHECK(cache.clear({.static_fields = "hidden=64"}, false) == 5);
    CHECK(cache.trials().size() == 30);
    CHECK(cache.stats().images == 1);
    CHECK(cache.clear({}, true) == 30);
    CHECK(cache.stats().trials == 0);
    CHECK(cache.stats().images == 0);
    CHECK(cache.verify().ok);
}

TEST_CASE("a candidate in flight is known until it ends") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    InFlight row{.key = sample_trial(1).key,
                 .candidate = "simple threads=1",
                 .pid = ::getpid(),
                 .started_at = 5,
                 .attempt = 1};
    cache.begin(row);
    REQUIRE(cache.in_flight().size() == 1);
    CHECK(cache.in_flight()[0].key == row.key);
    CHECK(cache.in_flight()[0].candidate == row.candidate);
    CHECK(cache.in_flight()[0].pid == row.pid);
    CHECK(cache.in_flight()[0].started_at == 5);
    CHECK(cache.abandoned().empty());
    row.attempt = 2;
    cache.begin(row);  // tried again: the same row
    REQUIRE(cache.in_flight().size() == 1);
    CHECK(cache.in_flight()[0].attempt == 2);
    cache.end(row);
    CHECK(cache.in_flight().empty());
}

TEST_CASE("a dead process leaves the name of what it measured until gc") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    const InFlight mine{
        .key = sample_trial(1).key, .candidate = "simple threads=1", .pid = ::getpid(), .started_at = 1};
    CHECK(in_child([&] {
              Cache cache = Cache::open(file);
              cache.begin({.key = sample_trial(2).key,
                           .candidate = "simple threads=2",
                           .pid = ::getpid(),
                           .started_at = 2});
          }) == "");
    Cache cache = Cache::open(file);
    cache.begin(mine);
    CHECK(cache.in_flight().size() == 2);
    REQUIRE(cache.abandoned().size() == 1);
    CHECK(cache.abandoned()[0].candidate == "simple threads=2");
    CHECK(cache.gc().in_flight_removed == 1);
    CHECK(cache.in_flight().size() == 1);
}

TEST_CASE("a process number that another process has now does not keep a row alive") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    {
        Cache cache = Cache::open(file);
        cache.begin({.key = sample_trial(2).key, .candidate = "a", .pid = ::getpid(), .started_at = 2});
        CHECK(cache.abandoned().empty());
    }
    run_sql(file, "UPDATE in_flight SET process_start = process_start - 1");
    CHECK(Cache::open(file).abandoned().size() == 1);
    run_sql(file, "UPDATE in_flight SET process_start = process_start + 1, boot = 'another'");
    CHECK(Cache::open(file).abandoned().size() == 1);
    run_sql(file, "UPDATE in_flight SET host = 'another', started_at = unixepoch() * 1000");
    CHECK(Cache::open(file).abandoned().empty());
    run_sql(file, "UPDATE in_flight SET started_at = started_at - 8 * 24 * 3600 * 1000");
    CHECK(Cache::open(file).abandoned().size() == 1);
}

TEST_CASE("merging takes what is new and says how much") {
    const TemporaryDirectory directory;
    Cache a = Cache::open(directory / "a.db");
    Cache b = Cache::open(directory / "b.db");
    for (int i = 0; i < 10; ++i) a.store(sample_trial(i));
    for (int i = 5; i < 20; ++i) b.store(sample_trial(i));
    CHECK(merge(a, b).added == 10);
    CHECK(merge(a, b).added == 0);
    CHECK(merge(a, a).added == 0);
    CHECK(a.trials().size() == 20);
    CHECK(b.trials().size() == 15);
    const Cache reader = Cache::open(directory / "a.db", OpenMode::read_only);
    CHECK(merge(b, reader).added == 5);
    CHECK(a.trials().size() == b.trials().size());
}

TEST_CASE("a row that was tampered with is found, left out, and does not hide the next best winner") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    const Trial older = won(1, Provenance::measured, 1000);
    const Trial newer = won(2, Provenance::measured, 2000);
    {
        Cache cache = Cache::open(file);
        cache.store(std::vector<Trial>{older, newer});
        CHECK(cache.winners() == std::vector<Trial>{newer});
    }
    run_sql(file, "UPDATE trial SET median_us = 0.001 WHERE created_at = 2000");
    const Cache cache = Cache::open(file);
    CHECK(cache.winners() == std::vector<Trial>{older});
    const VerifyReport report = cache.verify();
    CHECK_FALSE(report.ok);
    CHECK(report.trials_checked == 2);
    REQUIRE(report.problems.size() == 1);
    CHECK(report.problems[0].find(identity(newer)) != std::string::npos);
}

TEST_CASE("a cache with anything in it that Hone did not make is refused") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    for (const std::string sql : {"CREATE TRIGGER evil AFTER INSERT ON trial BEGIN DELETE FROM trial; END",
                                  "CREATE TABLE more (a)", "CREATE VIEW evil AS SELECT * FROM trial"}) {
        (void)Cache::open(file);
        CHECK(Cache::open(file).verify().ok);
        run_sql(file, sql);
        for (const OpenMode mode : {OpenMode::read_write, OpenMode::read_only})
            CHECK(open_error(file, mode) == "damaged");
        std::filesystem::remove(file);
    }
}

TEST_CASE("a cache can be moved, and a read-only one refuses to be written") {
    const TemporaryDirectory directory;
    Cache first = Cache::open(directory / "cache.db");
    first.store(sample_trial(1));
    Cache second = std::move(first);
    second.store(sample_trial(2));
    CHECK(second.writable());
    CHECK(second.path() == directory / "cache.db");
    Cache reader = Cache::open(directory / "cache.db", OpenMode::read_only);
    CHECK_FALSE(reader.writable());
    CHECK(kind_of_error([&] { reader.store(sample_trial(3)); }) == "read_only");
    CHECK(kind_of_error([&] { (void)reader.gc(); }) == "read_only");
    CHECK(kind_of_error([&] { reader.store_image(sample_image_key(1), sample_image(1)); }) == "read_only");
    CHECK(kind_of_error([&] { (void)reader.clear({}, true); }) == "read_only");
    second.store(sample_trial(4));
    CHECK(reader.trials().size() == 3);  // an open reader sees what others store
}

TEST_CASE("a file that is removed, moved or replaced while it is open takes nothing more") {
    const auto move_away = [](const std::filesystem::path& file) {
        std::filesystem::rename(file, file.string() + ".moved");
    };
    const auto replace = [&](const std::filesystem::path& file) {
        move_away(file);
        (void)Cache::open(file);
    };
    const auto remove = [](const std::filesystem::path& file) { std::filesystem::remove(file); };
    for (const std::function<void(const std::filesystem::path&)>& change :
         {std::function<void(const std::filesystem::path&)>(remove),
          std::function<void(const std::filesystem::path&)>(move_away),
          std::function<void(const std::filesystem::path&)>(replace)}) {
        const TemporaryDirectory directory;
        const std::filesystem::path file = directory / "cache.db";
        Cache cache = Cache::open(file);
        cache.store(sample_trial(1));
        change(file);
        CHECK_THROWS_WITH_AS(cache.store(sample_trial(2)), doctest::Contains("while it was open"),
                             CacheError);
        CHECK(kind_of_error([&] { cache.begin({.key = {}, .candidate = "a"}); }) == "unusable");
        CHECK(kind_of_error([&] { cache.store_image(sample_image_key(1), sample_image(1)); }) == "unusable");
    }
}

TEST_CASE("raced trials are those that came past the screening without winning or failing") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    std::vector<Trial> raced;
    for (const int i : {1, 2, 4, 5}) raced.push_back(sample_trial(i));  // none of them a winner
    raced[0].stage = Stage::raced;
    raced[1].stage = Stage::final_round;
    raced[2].stage = Stage::screened;
    raced[3].stage = Stage::raced;
    raced[3].status = TrialStatus::crashed;
    Trial winner = sample_trial(3);
    winner.stage = Stage::final_round;
    for (const Trial& trial : raced) cache.store(trial);
    cache.store(winner);
    CHECK(cache.raced_trials() == std::vector<Trial>{raced[0], raced[1]});
    CHECK(cache.raced_trials({.family = "another"}).empty());
}

TEST_CASE("a cache that was opened before fork() is refused in the child, and goes on in the parent") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "cache.db");
    CHECK(in_child([&] {
              require(kind_of_error([&] { (void)cache.trials(); }) == "unusable", "it was read");
              require(kind_of_error([&] { cache.store(sample_trial(1)); }) == "unusable", "it was written");
          }) == "");
    cache.store(sample_trial(1));
    CHECK(cache.trials().size() == 1);
}

TEST_CASE("a cache can be given another place, whose trials are then its own") {
    const TemporaryDirectory directory;
    Cache cache = Cache::open(directory / "first.db");
    cache.store(sample_trial(1));
    cache = Cache::open(directory / "second.db");
    CHECK(cache.trials().empty());
    CHECK(Cache::open(directory / "first.db").trials().size() == 1);
}
