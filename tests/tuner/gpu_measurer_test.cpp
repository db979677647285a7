// Everything that can go wrong on a GPU, on the fake driver.
#include "tuner/measure/gpu_measurer.h"

#include <doctest/doctest.h>

#include <signal.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/tuner/fake_gpu.h"
#include "tuner/errors.h"

using namespace hone;
using namespace hone::tuner;
using namespace hone::test;
using cache::TrialStatus;

TEST_CASE("a worker tells its device, verifies a candidate and times it") {
    Bench bench;
    CHECK(bench.session.measurer->device().traits.sm_count > 0);
    CHECK(bench.session.measurer->device().toolchain.nvrtc.size() > 0);
    REQUIRE(bench.session.measurer->begin_problem(bench.problem).detail == "");
    const ImageSource::Result image = bench.session.images->get(bench.problem, bench.candidates[0]);
    REQUIRE(image.status == TrialStatus::ok);
    const CandidateImage candidate{bench.candidates[0], &image.image};
    const Verdict verdict = bench.session.measurer->verify(candidate);
    CHECK(verdict.detail == "");
    CHECK(verdict.status == TrialStatus::ok);
    const Samples samples = bench.session.measurer->time(candidate, 5);
    CHECK(samples.verdict.status == TrialStatus::ok);
    CHECK(samples.us.size() == 5);
    CHECK(bench.session.measurer->calls_per_replay() >= 2);
    const auto rounds = bench.session.measurer->interleave({candidate, candidate}, 7);
    REQUIRE(rounds.size() == 2);
    CHECK(rounds[1].us.size() == 7);
}

TEST_CASE("samples say at which clock they were taken, where NVML knows it") {
    for (const auto& [script, mhz] : {std::pair{"nvml:sm_mhz=1755", 1755}, std::pair{"nvml:none", 0}}) {
        CAPTURE(script);
        Bench bench(script);
        REQUIRE(bench.session.measurer->begin_problem(bench.problem).status == TrialStatus::ok);
        const ImageSource::Result image = bench.session.images->get(bench.problem, bench.candidates[0]);
        REQUIRE(image.status == TrialStatus::ok);
        const CandidateImage candidate{bench.candidates[0], &image.image};
        REQUIRE(bench.session.measurer->verify(candidate).status == TrialStatus::ok);
        CHECK(bench.session.measurer->time(candidate, 3).sm_clock_mhz == mhz);
        CHECK(bench.session.measurer->interleave({candidate}, 3).at(0).sm_clock_mhz == mhz);
    }
}

TEST_CASE("a sample has ten calls where weights or a cache are what is read") {
    Bench bench;
    const auto calls = [&](const std::string& text) {
        std::string error;
        const auto problem = parse_problem(text, &error);
        REQUIRE(error == "");
        REQUIRE(bench.session.measurer->begin_problem(*problem).detail == "");
        return bench.session.measurer->calls_per_replay();
    };
    CHECK(calls("linear dtype=bf16 in=4096 out=4096 tokens=1") >= 10);
    CHECK(calls("linear dtype=bf16 in=4096 out=4096 tokens=2048") < 10);
    const std::string heads = " dtype=bf16 heads=32 kv_heads=8 head_dim=128";
    CHECK(calls("attention_decode" + heads + " batch=16 kv_len=8192") >= 10);
    CHECK(calls("attention_decode" + heads + " lengths=yes page_size=16 batch=16 kv_len=8192") >= 10);
    CHECK(calls("attention_prefill" + heads + " causal=yes batch=1 q_len=8192") < 10);
}

TEST_CASE("a problem that is expected is begun meanwhile; one that is not, or a death, costs nothing else") {
    Bench bench;
    GpuMeasurer& measurer = *bench.session.measurer;
    measurer.expect_problem(bench.problem);  // no worker yet
    REQUIRE(measurer.begin_problem(bench.problem).detail == "");
    CHECK(bench.verify(0).status == TrialStatus::ok);
    measurer.end_problem();

    const std::chrono::nanoseconds busy = measurer.busy();
    measurer.expect_problem(bench.problem);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK(measurer.begin_problem(bench.problem).detail == "");
    CHECK(measurer.busy() - busy < std::chrono::milliseconds(50));  // the worker's own time
    CHECK(bench.verify(0).status == TrialStatus::ok);
    measurer.end_problem();

    measurer.expect_problem(bench.problem);
    const Problem other = norm_problem(128);
    CHECK(measurer.begin_problem(other).detail == "");
    measurer.end_problem();

    measurer.expect_problem(bench.problem);
    const pid_t worker = measurer.worker_pid();
    kill(worker, SIGKILL);
    CHECK(measurer.begin_problem(bench.problem).detail == "");
    CHECK(bench.verify(0).status == TrialStatus::ok);
    CHECK(measurer.worker_pid() != worker);  // which may have answered before
}

TEST_CASE("a crash at the first launch is tried once more alone, then recorded with its cause") {
    Bench bench("launch:match=" + words_of(ranked_candidate(1)) + ":fail=700");
    REQUIRE(bench.session.measurer->begin_problem(bench.problem).status == TrialStatus::ok);
    const pid_t before = bench.session.measurer->worker_pid();
    const Verdict verdict = bench.verify(1);
    CHECK(verdict.status == TrialStatus::crashed);
    CHECK(verdict.detail.find("700") != std::string::npos);
    CHECK(bench.verify(0).status == TrialStatus::ok);
    CHECK(bench.session.measurer->worker_pid() != before);
}

TEST_CASE("a crash at the seventh launch only is found as well") {
    Bench bench("launch:match=" + words_of(ranked_candidate(1)) + ":fail=700:after=7");
    REQUIRE(bench.session.measurer->begin_problem(bench.problem).status == TrialStatus::ok);
    CHECK(bench.verify(1).status == TrialStatus::crashed);
    CHECK(bench.verify(2).status == TrialStatus::ok);
}

TEST_CASE("a worker that dies once by accident costs its candidate nothing") {
    const Scratch scratch;
    Bench bench("launch:match=" + words_of(ranked_candidate(1)) +
                ":signal=11:once=" + scratch.path("died").string());
    REQUIRE(bench.session.measurer->begin_problem(bench.problem).status == TrialStatus::ok);
    CHECK(bench.verify(1).status == TrialStatus::ok);
    kill(bench.session.measurer->worker_pid(), SIGKILL);
    CHECK(bench.verify(2).status == TrialStatus::ok);
    kill(bench.session.measurer->worker_pid(), SIGSTOP);
    CHECK(bench.verify(3).status == TrialStatus::timed_out);
    CHECK(bench.verify(4).status == TrialStatus::ok);
}

TEST_CASE("a worker that takes a dead one's place has opened the driver before") {
    constexpr std::chrono::milliseconds start_of_driver(1200);
    Bench bench("driver:init_us=1200000");
    for (int problem = 0; problem < 2; ++problem) {  // the first one has no spare yet
        if (problem > 0) bench.session.measurer->end_problem();
        REQUIRE(bench.session.measurer->begin_problem(bench.problem).status == TrialStatus::ok);
        REQUIRE(bench.verify(1).status == TrialStatus::ok);
    }
    // Who had to open it would take longer each time; a busy machine may need several.
    bool was_open = false;
    for (int attempt = 0; attempt < 5 && !was_open; ++attempt) {
        std::this_thread::sleep_for(start_of_driver * (attempt + 3) / 2);
        kill(bench.session.measurer->worker_pid(), SIGKILL);
        const Clock::time_point death = Clock::now();
        CHECK(bench.verify(1).status == TrialStatus::ok);
        was_open = Clock::now() - death < start_of_driver;
    }
    CHECK(was_open);
}

TEST_CASE("a kernel that never ends is killed within its limit, and the next candidate runs") {
    Bench bench("launch:match=" + words_of(ranked_candidate(1)) + ":hang");
    REQUIRE(bench.session.measurer->begin_problem(bench.problem).status == TrialStatus::ok);
    const Clock::time_point start = Clock::now();
    const Verdict verdict = bench.verify(1);
    CHECK(verdict.status == TrialStatus::timed_out);
    CHECK(Clock::now() - start < std::chrono::seconds(5));
    CHECK(bench.verify(2).status == TrialStatus::ok);
}

TEST_CASE("a candidate that a GPU hangs under for good is not at fault: the run ends without a word of it") {
    const Scratch scratch;
    const std::filesystem::path hanging = scratch.path("hanging");
    GpuMeasurerOptions measuring = quick_limits();
    measuring.begin_limit = std::chrono::milliseconds(600);
    measuring.deaths_in_a_row = 2;
    Bench bench("launch:hang:while=" + hanging.string(), measuring);
    REQUIRE(bench.session.measurer->begin_problem(bench.problem).status == TrialStatus::ok);
    REQUIRE(bench.verify(0).status == TrialStatus::ok);
    std::ofstream(hanging).flush();
    CHECK_THROWS_AS((void)bench.verify(1), WorkerError);
    std::filesystem::remove(hanging);  // it was reset
    CHECK(bench.verify(1).status == TrialStatus::ok);
}

TEST_CASE(
    "a kernel that hangs or crashes as the run ends is not known to be at fault, and fails nothing else") {
    for (const std::string fault : {":hang", ":fail=700"}) {
        CAPTURE(fault);
        std::atomic<bool> stop = false;
        GpuMeasurerOptions measuring = quick_limits();
        measuring.stop = &stop;
        Bench bench("launch:match=" + words_of(ranked_candidate(1)) + fault, measuring);
        REQUIRE(bench.session.measurer->begin_problem(bench.problem).status == TrialStatus::ok);
        stop = true;  // which a worker that is ready does not hear
        const Verdict verdict = bench.verify(1);
        CHECK(verdict.status == TrialStatus::launch_failed);
        CHECK(verdict.detail == "the run ended before its measuring worker was ready");
    }
}

TEST_CASE("rounds that a run ends in have no times, and no candidate has failed in them") {
    std::atomic<bool> stop = false;
    GpuMeasurerOptions measuring = quick_limits();
    measuring.stop = &stop;
    Bench bench("", measuring);
    REQUIRE(bench.session.measurer->begin_problem(bench.problem).status == TrialStatus::ok);
    const ImageSource::Result image = bench.session.images->get(bench.problem, bench.candidates[0]);
    const CandidateImage candidate{bench.candidates[0], &image.image};
    REQUIRE(bench.session.measurer->verify(candidate).status == TrialStatus::ok);
    stop = true;
    kill(bench.session.measurer->worker_pid(), SIGKILL);
    const std::vector<Samples> samples = bench.session.measurer->interleave({candidate, candidate}, 5);
    REQUIRE(samples.size() == 2);
    for (const Samples& one : samples) {
        CHECK(one.verdict.status == TrialStatus::ok);
        CHECK(one.us.empty());
    }
}

TEST_CASE("what the harness finds becomes a wrong result that says what is wrong") {
    const std::string culprit = words_of(ranked_candidate(1));
    for (const auto& [rule, expected] :
         {std::pair{"launch:match=kernel=hone_compare:write=6:offset=16:value=3:previous=",
                    "beyond the tolerance"},
          std::pair{"launch:match=kernel=hone_compare:write=6:offset=24:value=3:previous=", "not finite"},
          std::pair{"launch:match=kernel=hone_count_other:write=3:value=4:previous=", "outside its outputs"},
          std::pair{"launch:match=kernel=hone_count_differences:write=3:value=4:previous=",
                    "launches disagree"},
          std::pair{"launch:match=kernel=hone_checksum:write=2:value=99:previous=", "changed its inputs"}}) {
        CAPTURE(rule);
        Bench bench(rule + culprit);
        REQUIRE(bench.session.measurer->begin_problem(bench.problem).status == TrialStatus::ok);
        const Verdict verdict = bench.verify(1);
        CHECK(verdict.status == TrialStatus::wrong_result);
        CHECK(verdict.detail.find(expected) != std::string::npos);
        CHECK(bench.verify(2).status == TrialStatus::ok);
    }
}

TEST_CASE("a launch that the driver refuses is launch_failed, and the worker lives on") {
    Bench bench("launch:match=" + words_of(ranked_candidate(1)) + ":fail=701");
    REQUIRE(bench.session.measurer->begin_problem(bench.problem).status == TrialStatus::ok);
    const pid_t before = bench.session.measurer->worker_pid();
    CHECK(bench.verify(1).status == TrialStatus::launch_failed);
    CHECK(bench.verify(2).status == TrialStatus::ok);
    CHECK(bench.session.measurer->worker_pid() == before);
}

TEST_CASE("a problem that does not fit into memory ends with its cause, not with the run") {
    Bench bench("device:memory=67108864");
    const auto huge = parse_problem("rmsnorm dtype=bf16 hidden=65536 rows=65536");
    REQUIRE(huge);
    const Verdict verdict = bench.session.measurer->begin_problem(*huge);
    CHECK(verdict.status == TrialStatus::launch_failed);
    CHECK(verdict.detail.find("memory") != std::string::npos);
    CHECK(bench.session.measurer->begin_problem(bench.problem).status == TrialStatus::ok);
}

TEST_CASE("samples taken while the GPU is throttled are repeated, and flagged when it does not end") {
    const auto timed = [](const std::string& script) {
        Bench bench(script);
        REQUIRE(bench.session.measurer->begin_problem(bench.problem).status == TrialStatus::ok);
        const ImageSource::Result image = bench.session.images->get(bench.problem, bench.candidates[0]);
        return bench.session.measurer->time({bench.candidates[0], &image.image}, 3);
    };
    CHECK(timed("nvml:throttle=0x40:after=1:times=2").verdict.detail == "");
    const Samples flagged = timed("nvml:throttle=0x40");
    CHECK(flagged.verdict.status == TrialStatus::ok);
    CHECK(flagged.us.size() == 3);
    CHECK(flagged.verdict.detail.find("throttled") != std::string::npos);
}

TEST_CASE("a session starts no worker before there is something to measure") {
    Bench bench;
    CHECK(bench.session.measurer->worker_pid() == -1);
    REQUIRE(bench.session.measurer->begin_problem(bench.problem).detail == "");
    CHECK(bench.session.measurer->worker_pid() > 0);
}

TEST_CASE("a worker that sees no GPU is a NoDeviceError, and one that sees another GPU is no worker") {
    Bench bench;
    {
        const ScopedVariable none("HONE_FAKE_SCRIPT", "device:count=0");
        CHECK_THROWS_AS((void)bench.session.measurer->begin_problem(bench.problem), NoDeviceError);
    }
    const ScopedVariable other("HONE_FAKE_SCRIPT", "device:kind=a10");
    CHECK_THROWS_WITH_AS((void)bench.session.measurer->begin_problem(bench.problem),
                         doctest::Contains("sees NVIDIA A10 as GPU 0, not NVIDIA H100"), WorkerError);
}

TEST_CASE("a worker that is made ready takes its place when a problem begins, and says then what is wrong") {
    Bench bench;
    Measurer& measurer = *bench.session.measurer;
    {
        const ScopedVariable none("HONE_FAKE_SCRIPT", "device:count=0");
        measurer.get_ready();
        measurer.get_ready();
        CHECK(bench.session.measurer->worker_pid() == -1);
        CHECK(measurer.busy().count() == 0);
    }
    CHECK_THROWS_AS((void)measurer.begin_problem(bench.problem), NoDeviceError);

    Bench other;
    other.session.measurer->get_ready();
    {
        const ScopedVariable none("HONE_FAKE_SCRIPT", "device:count=0");  // for those that start from now on
        REQUIRE(other.session.measurer->begin_problem(other.problem).detail == "");
    }
    const pid_t worker = other.session.measurer->worker_pid();
    other.session.measurer->get_ready();
    CHECK(other.verify(1).status == TrialStatus::ok);
    CHECK(other.session.measurer->worker_pid() == worker);
}

TEST_CASE("workers that die before they are ready end the run with a clear error") {
    Bench bench("launch:match=source=rmsnorm/reference.cu:fail=700");
    CHECK_THROWS_WITH_AS((void)bench.session.measurer->begin_problem(bench.problem),
                         doctest::Contains("5 measuring workers"), WorkerError);
}

TEST_CASE("who stops a run waits for one worker that dies before it is ready, not for five") {
    const std::atomic<bool> stop{true};
    GpuMeasurerOptions measuring = quick_limits();
    measuring.stop = &stop;
    Bench bench("launch:match=source=rmsnorm/reference.cu:fail=700", measuring);
    const Verdict verdict = bench.session.measurer->begin_problem(bench.problem);
    CHECK(verdict.status == TrialStatus::launch_failed);
    CHECK(verdict.detail == "the run ended before its measuring worker was ready");
}

TEST_CASE("a GPU that hangs from its first launch on keeps nobody behind the run's end, or Ctrl-C") {
    using std::chrono::seconds;
    std::atomic<bool> stop{false};
    for (const bool is_stopped : {false, true}) {
        CAPTURE(is_stopped);
        GpuMeasurerOptions measuring = quick_limits();
        if (!is_stopped) measuring.end = runtime::Clock::now() + seconds(1);
        measuring.stop = &stop;
        Bench bench("launch:match=source=rmsnorm/reference.cu:hang", measuring);
        const std::jthread interrupt([&] {
            std::this_thread::sleep_for(seconds(1));
            stop = is_stopped;
        });
        const runtime::Clock::time_point start = runtime::Clock::now();
        CHECK(bench.session.measurer->begin_problem(bench.problem).detail ==
              "the run ended before its measuring worker was ready");
        CHECK(runtime::Clock::now() - start < seconds(15));  // a worker's limit is 30
    }
}
