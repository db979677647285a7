// Faults that the targets of tests/fuzz found, each as small as it can be.
#include <doctest/doctest.h>

#include <sqlite3.h>

#include <array>
#include <ctime>
#include <fstream>

#include "cache/bundle.h"
#include "cache/error.h"
#include "kernel_templates/catalog.h"
#include "models/model_document.h"
#include "runtime/compile/compiler.h"
#include "tests/support/drawn_problem.h"
#include "tests/support/scratch.h"
#include "tuner/errors.h"
#include "tuner/measure/recorded.h"

using namespace hone;
using namespace hone::models;
using namespace hone::tuner;

namespace {

DeviceInfo h100() {
    const DeviceTraits traits = *representative_device({9, 0, true});
    return {.traits = traits,
            .gpu = {.name = traits.name, .compute_major = 9, .compute_minor = 0, .sm_count = traits.sm_count},
            .toolchain = {.driver = "580.1", .nvrtc = "13.0"}};
}

/// A recording of one candidate with one sample.
Recording recording(const DeviceInfo& device, int calls, double us) {
    const test::Scratch scratch;
    const RecordedProblem problem{
        .begin = {}, .calls_per_replay = calls, .candidates = {{"group_rows", {.us = {us}}}}};
    std::ofstream(scratch.path("sweep.jsonl")) << header_line(device) << '\n'
                                               << problem_line("rmsnorm hidden=64 rows=1", problem) << '\n';
    return read_recording(scratch.path("sweep.jsonl"));
}

cache::Trial winner_named(const std::string& gpu) {
    const Family& family = *find_family("rmsnorm");
    const Problem problem = test::drawn_problems(family, 1).front();
    const Candidate candidate = *fallback(problem, h100().traits);
    cache::Trial trial;
    trial.key = {.gpu = h100().gpu,
                 .family = std::string(family.name),
                 .static_fields = static_text(problem),
                 .dynamic_fields = dynamic_text(problem)};
    trial.key.gpu.name = gpu;
    trial.candidate = to_string(candidate);
    trial.template_hash = std::string(template_hash(*candidate.variant));
    trial.winner = true;
    trial.timing = {.median_us = 2, .p10_us = 1, .p90_us = 3, .samples = 30};
    return trial;
}

}  // namespace

// Division by zero in the prediction of norms.
TEST_CASE("a recording of a GPU with fewer registers than threads is refused") {
    CHECK(recording(h100(), 1, 2.5).problems.size() == 1);
    DeviceInfo device = h100();
    device.traits.registers_per_sm = 64;
    CHECK_THROWS_WITH_AS(static_cast<void>(recording(device, 1, 2.5)), doctest::Contains("out of range"),
                         ConfigError);
    device = h100();
    device.traits.sm_count = 2'000'000'000;
    CHECK_THROWS_AS(static_cast<void>(recording(device, 1, 2.5)), ConfigError);
}

// A race divides what it may spend by the calls of a replay; the largest times became null when they were
// written again.
TEST_CASE("a recording whose replays make no calls, or take longer than thirty years, is refused") {
    CHECK_THROWS_WITH_AS(static_cast<void>(recording(h100(), 0, 2.5)), doctest::Contains("calls_per_replay"),
                         ConfigError);
    CHECK_THROWS_WITH_AS(static_cast<void>(recording(h100(), 1, 2e15)), doctest::Contains("'us'"),
                         ConfigError);
}

// Signed overflow.
TEST_CASE("a compiler's report with numbers beyond an int says the largest one") {
    const auto report = runtime::parse_ptxas_report(
        "4294967296 bytes stack frame, 2147483647 bytes spill stores, 2147483647 bytes spill loads\n"
        "Used 99999999999999999999 registers, 1024 bytes smem\n");
    CHECK(report.registers == 2147483647);
    CHECK(report.spill_bytes == 2147483647);
    CHECK(report.shared_bytes == 1024);
}

// An exception of the JSON library left write_bundle(), and with it `hone export`.
TEST_CASE("a winner whose text is no UTF-8 is refused as a row of a bundle") {
    CHECK(cache::read_bundle(cache::write_bundle({winner_named("H100")}), "bundle").size() == 1);
    CHECK_THROWS_WITH_AS(static_cast<void>(cache::write_bundle({winner_named("H\xA0")})),
                         doctest::Contains("gpu_name"), cache::BundleError);
}

// The line of each key was searched from the start of the file: minutes for what reading takes a second.
TEST_CASE("a model file with many keys is read in one pass") {
    std::string text = "{\n";
    for (int i = 0; i < 150'000; ++i) text += "\"k" + std::to_string(i) + "\": 1,\n";
    text += "\"last\": 1}";
    const std::clock_t start = std::clock();  // CPU time: a busy machine gives less of it a second
    const ModelDocument document = ModelDocument::from_json(text, "config.json");
    CHECK((std::clock() - start) / CLOCKS_PER_SEC < 20);
    const std::array<std::string_view, 1> keys{"last"};
    REQUIRE(document.find(keys) != nullptr);
    CHECK(document.place(*document.find(keys)) == "config.json:150002: ");
}

// A damaged image was removed by its key. A key that is a blob with the same bytes is found by no text, so
// the image stayed.
TEST_CASE("gc clears an image away whose key is of another type") {
    const test::Scratch scratch;
    const std::filesystem::path file = scratch.path("images.db");
    cache::Cache cache = cache::Cache::open(file);
    cache.store_image({.template_hash = "0123456789abcdef0123456789abcdef",
                       .static_fields = "hidden=64",
                       .candidate = "group_rows threads=128",
                       .arch = "sm_90a",
                       .nvrtc = "13.0",
                       .options = "--std=c++20"},
                      {.cubin = std::vector<std::byte>(64), .resources = {}});
    sqlite3* database = nullptr;
    REQUIRE(sqlite3_open(file.c_str(), &database) == SQLITE_OK);
    const char* damage =
        "PRAGMA ignore_check_constraints = ON; PRAGMA writable_schema = ON;"
        "CREATE TEMP TABLE kept AS SELECT sql FROM main.sqlite_schema WHERE name = 'image';"
        "UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = 'image';"
        "PRAGMA writable_schema = RESET; UPDATE image SET key = CAST(key AS BLOB);"
        "PRAGMA writable_schema = ON;"
        "UPDATE sqlite_schema SET sql = (SELECT sql FROM kept) WHERE name = 'image'; PRAGMA writable_schema "
        "= RESET";
    CHECK(sqlite3_exec(database, damage, nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(database);
    REQUIRE_FALSE(cache.verify().ok);
    CHECK(cache.gc().images_removed == 1);
    CHECK(cache.verify().ok);
}
