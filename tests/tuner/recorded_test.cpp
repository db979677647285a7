#include "tuner/measure/recorded.h"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/support/scratch.h"
#include "tests/tuner/made_up_measurer.h"
#include "tuner/errors.h"

using namespace hone;
using namespace hone::tuner;
using hone::test::MadeUpMeasurer;
using hone::test::Scratch;

namespace {

using test::never;
using test::spread;

TuneResult tune_with(Measurer& measurer, const std::filesystem::path& cache_file) {
    auto cache = cache::Cache::open(cache_file);
    test::NoImages images;
    return tune(test::norm_workload({1, 256}), {.effort = Effort::quick, .budget = {}}, measurer, images,
                cache, {}, never);
}

void record_sweep(const std::filesystem::path& file, const std::filesystem::path& cache_file) {
    MadeUpMeasurer measurer;
    measurer.noise = 0.002;
    measurer.true_us = spread;
    const auto space = ranked_space(test::norm_problem(1), measurer.device().traits);
    measurer.failures[to_string(space[2].candidate)] = {.status = cache::TrialStatus::wrong_result,
                                                        .detail = "planted"};
    RecordingMeasurer recorder(measurer, file);
    (void)tune_with(recorder, cache_file);
}

std::string text_of(const std::filesystem::path& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a recorded sweep replays to the same winners, every time") {
    const Scratch scratch;
    record_sweep(scratch.path("sweep.jsonl"), scratch.path("measured.db"));
    const Recording recording = read_recording(scratch.path("sweep.jsonl"));
    CHECK(recording.problems.size() == 2);
    std::vector<std::string> winners;
    for (const char* file : {"replay1.db", "replay2.db"}) {
        ReplayMeasurer replay(recording);
        const TuneResult result = tune_with(replay, scratch.path(file));
        for (const ProblemResult& problem : result.problems) {
            REQUIRE(problem.winner);
            CHECK(problem.winner->provenance == cache::Provenance::replayed);
            winners.push_back(problem.winner->candidate);
        }
    }
    auto measured = cache::Cache::open(scratch.path("measured.db"));
    CHECK(winners[0] == winners[2]);
    CHECK(winners[1] == winners[3]);
    for (const cache::Trial& winner : measured.winners()) {
        const std::string& replayed = winner.key.dynamic_fields == "rows=1" ? winners[0] : winners[1];
        CHECK(spread(replayed) <= spread(winner.candidate) * 1.03);
    }
}

TEST_CASE("what is recorded gets ready for problems as it does alone") {
    const Scratch scratch;
    MadeUpMeasurer alone;
    static_cast<void>(tune_with(alone, scratch.path("alone.db")));
    MadeUpMeasurer recorded;
    RecordingMeasurer recorder(recorded, scratch.path("sweep.jsonl"));
    static_cast<void>(tune_with(recorder, scratch.path("recorded.db")));
    CHECK(recorded.is_ready);
    CHECK_FALSE(recorded.expected.empty());
    CHECK(recorded.expected == alone.expected);
}

TEST_CASE("failures are recorded with their cause, and replayed as they were") {
    const Scratch scratch;
    record_sweep(scratch.path("sweep.jsonl"), scratch.path("measured.db"));
    ReplayMeasurer replay(read_recording(scratch.path("sweep.jsonl")));
    const Problem problem = test::norm_problem(1);
    const auto space = ranked_space(problem, replay.device().traits);
    REQUIRE(replay.begin_problem(problem).status == cache::TrialStatus::ok);
    const Verdict verdict = replay.verify({.candidate = space[2].candidate});
    CHECK(verdict.status == cache::TrialStatus::wrong_result);
    CHECK(verdict.detail == "planted");
    CHECK(replay.can_measure(problem, space[0].candidate));
    CHECK_FALSE(replay.can_measure(problem, space.back().candidate));
    CHECK(replay.begin_problem(test::norm_problem(7)).status != cache::TrialStatus::ok);
}

TEST_CASE("samples come in the recorded order, and from the start again when they run out") {
    const Problem problem = test::norm_problem(1);
    const Candidate candidate = ranked_space(problem, test::made_up_device().traits)[0].candidate;
    Recording recording{.device = test::made_up_device(), .problems = {}};
    recording.problems[to_string(problem)].candidates[to_string(candidate)].us = {1, 2, 3};
    ReplayMeasurer replay(recording);
    (void)replay.begin_problem(problem);
    CHECK(replay.time({.candidate = candidate}, 4).us == std::vector<double>{1, 2, 3, 1});
    CHECK(replay.time({.candidate = candidate}, 2).us == std::vector<double>{2, 3});
}

TEST_CASE("a recording whose writer was killed is read up to the line before") {
    const Scratch scratch;
    record_sweep(scratch.path("sweep.jsonl"), scratch.path("measured.db"));
    const std::string whole = text_of(scratch.path("sweep.jsonl"));
    const Recording all = read_recording(scratch.path("sweep.jsonl"));
    std::ofstream(scratch.path("cut.jsonl")) << whole.substr(0, whole.size() - 200);
    const Recording cut = read_recording(scratch.path("cut.jsonl"));
    REQUIRE(cut.problems.size() == 2);  // the line that is lost is a second look
    const std::string last = to_string(test::norm_problem(1));
    CHECK(cut.problems.at(last).candidates.size() < all.problems.at(last).candidates.size());
}

TEST_CASE("a recording that is damaged, empty, of another schema or missing is refused with its line") {
    const Scratch scratch;
    const auto file = scratch.path("bad.jsonl");
    const std::string header = header_line(test::made_up_device()) + "\n";
    for (const std::string& text :
         {std::string(), std::string("no json\n"), std::string("{\"schema\": \"other/1\"}\n"),
          header + "[]\n{}\n",
          header + "{\"problem\": \"p\", \"begin\": {}, \"calls_per_replay\": 1, \"candidates\": {}}\n",
          header + "{\"problem\": 3}\n"}) {
        CAPTURE(text);
        std::ofstream(file) << text;
        CHECK_THROWS_WITH_AS((void)read_recording(file), doctest::Contains("bad.jsonl:"), ConfigError);
    }
    CHECK_THROWS_AS((void)read_recording(scratch.path("none.jsonl")), runtime::InputError);
}

TEST_CASE("a recording that never ends, or is longer than any, is not read") {
    CHECK_THROWS_WITH_AS((void)read_recording("/dev/zero"), "/dev/zero: not a regular file",
                         runtime::InputError);
    MadeUpMeasurer measurer;
    CHECK_THROWS_AS(RecordingMeasurer(measurer, "/dev/zero"), runtime::InputError);
    const Scratch scratch;
    const auto file = scratch.path("long.jsonl");
    std::ofstream(file) << "{}";
    std::filesystem::resize_file(file, (std::uintmax_t{1} << 30) + 1);  // with a hole
    CHECK_THROWS_WITH_AS((void)read_recording(file),
                         doctest::Contains("1073741825 bytes; allowed are up to 1073741824"), ConfigError);
}

TEST_CASE("a recording takes no second device") {
    const Scratch scratch;
    DeviceInfo other = test::made_up_device();
    other.gpu.sm_count = 114;
    std::ofstream(scratch.path("sweep.jsonl")) << header_line(other) << '\n';
    MadeUpMeasurer measurer;
    CHECK_THROWS_AS(RecordingMeasurer(measurer, scratch.path("sweep.jsonl")), ConfigError);
}

TEST_CASE("a recording of a device that cannot exist is refused") {
    const Scratch scratch;
    DeviceInfo impossible = test::made_up_device();
    impossible.traits.sm_count = 0;
    std::ofstream(scratch.path("sweep.jsonl")) << header_line(impossible) << '\n';
    CHECK_THROWS_WITH_AS((void)read_recording(scratch.path("sweep.jsonl")),
                         doctest::Contains("sweep.jsonl:1"), ConfigError);
}
