// Issue 16, faults 5 and 7: rows that cannot be true are refused by import, merge and replay, named by
// verify, and left out of exports; and what was measured here ranks before what came from elsewhere, whatever
// a clock said.
#include <doctest/doctest.h>

#include <fstream>

#include "cache/bundle.h"
#include "cache/database.h"
#include "cache/layers.h"
#include "cache/process.h"
#include "cache/validator.h"
#include "kernel_templates/catalog.h"
#include "tests/cache/support.h"
#include "tests/cli/program.h"
#include "tuner/measure/recorded.h"

using namespace hone::cache;
using namespace hone::cache::test;
using hone::test::Ended;
using hone::test::Sandbox;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t year_ms = std::int64_t{365} * 24 * 3600 * 1000;

struct Hostile {
    const char* field;
    std::function<void(Trial&)> change;
};

/// Each one is a winner with one field that cannot be right.
std::vector<Hostile> hostile_changes() {
    return {{"gpu_name",
             [](Trial& t) {
                 t.key.gpu.name =
                     "\x1b[2J\x07"
                     "evil";
             }},
            {"family", [](Trial& t) { t.key.family = "../../x"; }},
            {"static_fields", [](Trial& t) { t.key.static_fields = "'; DROP TABLE trial;--"; }},
            {"created_at", [](Trial& t) { t.created_at = INT64_MIN; }},
            {"median_us", [](Trial& t) { t.timing.median_us = 1e300; }},
            {"median_us", [](Trial& t) { t.timing.median_us = 0.001; }},
            {"p10_us", [](Trial& t) { t.timing.p10_us = -1e300; }},
            {"p10_us", [](Trial& t) { t.timing.p10_us = 0; }},
            {"candidate", [](Trial& t) { t.candidate = std::string(60'000, 'a'); }},
            {"candidate", [](Trial& t) { t.candidate += ";system(\"id\")"; }},
            {"registers", [](Trial& t) { t.resources.registers = -7; }},
            {"tool_version", [](Trial& t) { t.tool_version = std::string("a\0b", 3); }},
            {"created_at", [](Trial& t) { t.created_at = now_ms() + 10 * year_ms; }},
            {"created_at", [](Trial& t) { t.created_at = 253'370'764'800'000; }},  // the year 9999
            {"sm_count", [](Trial& t) { t.key.gpu.sm_count = -1; }},
            {"detail", [](Trial& t) { t.detail = "\xff\xfe"; }},
            {"template_hash", [](Trial& t) { t.template_hash = "nothex"; }}};
}

std::vector<Trial> hostile_trials() {
    std::vector<Trial> trials;
    for (const Hostile& hostile : hostile_changes()) {
        hostile.change(trials.emplace_back(sample_winner(100 + static_cast<int>(trials.size()))));
    }
    return trials;
}

/// The cache that the sandbox's program uses.
fs::path user_cache(const Sandbox& box) {
    fs::create_directories(box.path("cache"));
    fs::permissions(box.path("cache"), fs::perms::owner_all);
    return box.path("cache/cache.db");
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the validator names the field of every hostile row, and takes an honest one") {
    CHECK_FALSE(fault_of(sample_winner(1), now_ms()));
    for (const Hostile& hostile : hostile_changes()) {
        Trial trial = sample_winner(1);
        hostile.change(trial);
        const std::optional<Fault> fault = fault_of(trial, now_ms());
        REQUIRE(fault);
        CHECK(fault->field == hostile.field);
        CHECK(describe(*fault, trial).size() < 1000);
        CHECK_FALSE(hone::test::has_controls(describe(*fault, trial)));
    }
}

TEST_CASE("merge takes what can be true, names the rest, and says so with its exit code") {
    Sandbox box;
    const fs::path from = box.path("from.db");
    {
        Cache other = Cache::open(from);
        other.store(hostile_trials());
        other.store(sample_winner(1));
    }
    (void)user_cache(box);
    const Ended merged = box.run({"merge", from.string()});
    CHECK(merged.code == 6);
    CHECK(has(merged.err, "field 'median_us': is 0.001"));
    CHECK(merged.err.size() < 20'000);
    const Cache cache = Cache::open(box.path("cache/cache.db"));
    CHECK(cache.trials() == std::vector<Trial>{sample_winner(1)});
    CHECK(cache.verify().ok);
    CHECK(box.run({"export"}).code == 0);
}

TEST_CASE("verify names hostile rows; export writes the others and fails loudly") {
    Sandbox box;
    const fs::path file = user_cache(box);
    {
        Cache cache = Cache::open(file);
        cache.store(hostile_trials());
        cache.store(sample_winner(1));
    }
    const Ended verified = box.run({"cache", "verify", "--json"});
    CHECK(verified.code == 5);
    for (const Hostile& hostile : hostile_changes())
        CHECK(has(verified.out, std::string("field '") + hostile.field + "'"));
    const Ended exported = box.run({"export", "-o", "winners.json"});
    CHECK(exported.code == 5);
    CHECK(has(exported.err, "left out"));
    CHECK(read_bundle(box.read("winners.json"), "winners.json") == std::vector<Trial>{sample_winner(1)});
    CHECK(box.run({"show", "rmsnorm", "dtype=bf16", "hidden=4096", "rows=16"}).out.size() < 100'000);
}

TEST_CASE("an imported row from the year 9999 or below the least time is refused with its field") {
    Sandbox box;
    (void)user_cache(box);
    Trial future = sample_winner(1);
    future.created_at = 253'370'764'800'000;
    box.write("future.json", write_bundle({future}));
    const Ended refused = box.run({"import", "future.json"});
    CHECK(refused.code == 6);
    CHECK(has(refused.err, "field 'created_at'"));
    CHECK(has(refused.err, "clock"));
    Trial impossible = sample_winner(1);
    impossible.timing.median_us = 0.001;
    CHECK_THROWS_AS((void)write_bundle({impossible}), BundleError);
}

TEST_CASE("what was measured here comes before an imported row that is newer and faster") {
    const TemporaryDirectory directory;
    const LayerPaths paths{.site = std::nullopt, .user = directory / "user.db"};
    const auto loaded = [&] {
        const auto winners = winners_of_samples(Winners(paths, {}, h100(), toolchain(), nullptr), 2);
        REQUIRE(winners.size() == 1);
        return winners[0].trial;
    };
    Trial imported = sample_winner(1);
    imported.created_at += year_ms / 100;
    imported.timing.median_us -= 20;
    const Trial measured = sample_winner(1);
    {
        Cache cache = Cache::open(paths.user);
        cache.store_imported(std::span(&imported, 1));
        CHECK(loaded() == imported);
        cache.store(measured);
        CHECK(cache.winners() == std::vector<Trial>{measured});
        CHECK(cache.stats().winners == 1);
        cache.store_imported(std::span(&imported, 1));
    }
    CHECK(loaded() == measured);
}

TEST_CASE("a run whose clock was ten years ahead does not outlast the next one") {
    const TemporaryDirectory directory;
    const LayerPaths paths{.site = std::nullopt, .user = directory / "user.db"};
    Trial ahead = sample_winner(1);
    ahead.created_at += 10 * year_ms;
    Trial next = sample_winner(1);
    next.timing.median_us += 5;
    {
        Cache cache = Cache::open(paths.user);
        cache.store(ahead);
        cache.store(next);
        CHECK(cache.winners() == std::vector<Trial>{next});
    }
    const auto winners = winners_of_samples(Winners(paths, {}, h100(), toolchain(), nullptr), 2);
    REQUIRE(winners.size() == 1);
    CHECK(winners[0].trial == next);
}

TEST_CASE("a cache of schema version 1 is read as it is, and keeps its rows when it is brought up to date") {
    const TemporaryDirectory directory;
    const auto file = directory / "cache.db";
    const auto copy = directory / "copy.db";
    Cache::open(copy).store(sample_winner(2));
    write_file(file, "");
    { (void)open_database(file, OpenMode::read_write, {.schema = migrations().first(1)}); }
    // A row as version 1 wrote it: without the columns that came later.
    run_sql(file, "ATTACH '" + copy.string() +
                      "' AS other; CREATE TEMP TABLE moved AS SELECT * FROM other.trial;"
                      "ALTER TABLE moved DROP COLUMN imported; ALTER TABLE moved DROP COLUMN sm_clock_mhz;"
                      "ALTER TABLE moved DROP COLUMN incumbent_ratio; ALTER TABLE moved DROP COLUMN chain;"
                      "INSERT INTO main.trial SELECT * FROM moved");
    const std::string before = read_file(file);
    CHECK(Cache::open(file, OpenMode::read_only).winners() == std::vector<Trial>{sample_winner(2)});
    CHECK(read_file(file) == before);
    Cache cache = Cache::open(file);
    CHECK(cache.winners() == std::vector<Trial>{sample_winner(2)});
    CHECK(cache.stats().schema_version == 3);
    Trial later = sample_winner(2);
    later.created_at -= year_ms;  // by a clock that went back
    cache.store(later);
    CHECK(cache.winners() == std::vector<Trial>{later});
}

TEST_CASE("a recording with a time that no device can reach has a failed candidate, not a winner") {
    const fs::path file = fs::path(HONE_SOURCE_DIR) / "configs/recorded/h100-sxm.jsonl";
    std::ifstream in(file);
    std::string header;
    std::string line;
    std::getline(in, header);
    std::getline(in, line);
    nlohmann::json sweep = nlohmann::json::parse(line);
    std::string cheat;
    for (auto& [name, candidate] : sweep["candidates"].items()) {
        if (candidate["us"].empty()) continue;
        candidate["us"] = {0.001, 0.001, 0.001};
        cheat = name;
        break;
    }
    REQUIRE(!cheat.empty());
    const TemporaryDirectory directory;
    std::ofstream(directory / "sweep.jsonl") << header << '\n' << sweep.dump() << '\n';
    hone::tuner::ReplayMeasurer measurer(hone::tuner::read_recording(directory / "sweep.jsonl"));
    const auto problem = hone::parse_problem(sweep["problem"].get<std::string>());
    REQUIRE(problem);
    (void)measurer.begin_problem(*problem);
    const auto candidate = hone::parse_candidate(*problem->family, cheat);
    REQUIRE(candidate);
    const hone::tuner::Samples samples = measurer.time({.candidate = *candidate}, 3);
    CHECK(samples.verdict.status == TrialStatus::launch_failed);
    CHECK(samples.us.empty());
    CHECK(has(samples.verdict.detail, "0.001"));
}
