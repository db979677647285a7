// Starts threads: the thread sanitizer runs this file, too.
#include "runtime/dispatch/dispatcher.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "hone/hone.h"
#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"
#include "runtime/operators/norm.h"
#include "runtime/operators/runtime_state.h"
#include "tests/runtime/dispatch_machine.h"
#include "tests/runtime/operator_under_test.h"
#include "tests/support/fake_machine.h"

namespace hone::runtime {
namespace {

namespace fs = std::filesystem;

using test::Machine;
using test::other_candidate;
using test::small_norm;
using test::store;
using test::traits;
using test::trial;

std::vector<Origin> origins(const PrepareReport& report) {
    std::vector<Origin> list;
    for (const BucketReport& bucket : report.buckets) list.push_back(bucket.origin);
    return list;
}

/// The error that `body` throws.
template <class Body>
Error error_of(Body&& body) {
    try {
        body();
    } catch (const Error& error) {
        return error;
    }
    FAIL("nothing was thrown");
    return Error("", "", "");
}

TEST_CASE("without a cache file every bucket runs its fallback, and the report says how to do better") {
    Machine machine;
    Runtime runtime(machine.options());
    const RmsNormKernel norm = runtime.prepare(small_norm);
    const PrepareReport report = norm.reports().front();
    REQUIRE(report.buckets.size() == 5);
    CHECK(report.buckets[3].sizes[0].first == 5);
    CHECK(report.buckets[3].sizes[0].last == 8);
    for (const BucketReport& bucket : report.buckets) CHECK(bucket.origin == Origin::fallback);
    CHECK(report.tune_command ==
          "hone tune --op rmsnorm --fields \"dtype=bf16 output=same residual=no hidden=4096\" --tokens "
          "1,2,4,8,16");
    CHECK(machine.warnings.empty());
    CHECK(norm.run(nullptr, test::untouched_args(), 3) == Status::ok);
    CHECK(machine.fakes().launch_count() == 1);
    CHECK(runtime.counters().runs_fallback == 1);
    CHECK(runtime.counters().prepares == 1);
}

TEST_CASE("equal candidates of several buckets are compiled once and shared") {
    Machine machine;
    Runtime runtime(machine.options());
    const RmsNormKernel norm = runtime.prepare(small_norm);
    std::set<std::string> candidates;
    const PrepareReport report = norm.reports().front();
    for (const BucketReport& bucket : report.buckets) candidates.insert(bucket.candidate);
    CHECK(runtime.counters().compiles == candidates.size());
    CHECK(machine.fakes().live("module") == static_cast<int>(candidates.size()));

    const RmsNormKernel again = runtime.prepare(small_norm);
    CHECK(runtime.counters().compiles == candidates.size());
    CHECK(again.reports().front().buckets[0].image == ImageOrigin::shared);
}

TEST_CASE("stored winners are dispatched: exact here, as neighbours nearby") {
    Machine machine;
    const Candidate best = other_candidate();
    store(machine.file(), {trial(4, best)});
    Runtime runtime(machine.options());
    const RmsNormKernel norm = runtime.prepare(small_norm);
    CHECK(origins(norm.reports().front()) == std::vector{Origin::neighbour, Origin::neighbour, Origin::exact,
                                                         Origin::neighbour, Origin::neighbour});
    CHECK(norm.reports().front().buckets[2].candidate == to_string(best));
    CHECK(norm.reports().front().buckets[2].trust == Trust::exact);
    CHECK(norm.reports().front().buckets[2].tune_command.empty());
    CHECK(norm.run(nullptr, test::untouched_args(), 3) == Status::ok);
    CHECK(norm.run(nullptr, test::untouched_args(), 16) == Status::ok);
    CHECK(runtime.counters().runs_exact == 1);
    CHECK(runtime.counters().runs_neighbour == 1);
}

TEST_CASE(
    "a held candidate serves its cell and no other, until it is released; what was prepared keeps its own") {
    Machine machine;
    Runtime runtime(machine.options());
    Dispatcher& dispatcher = dispatcher_of(runtime);
    const RmsNormKernel before = runtime.prepare(small_norm);
    const Problem at_edge = *parse_problem(before.reports().front().problem);
    Problem held = with(at_edge, Sizes{8});
    const Candidate other = other_candidate();
    dispatcher.hold(held, other);
    const std::vector<BucketReport> now = runtime.prepare(small_norm).reports().front().buckets;
    const std::vector<BucketReport> then = before.reports().front().buckets;
    REQUIRE(now.size() == then.size());
    for (std::size_t i = 0; i < now.size(); ++i)
        CHECK(now[i].candidate == (now[i].sizes[0].last == 8 ? to_string(other) : then[i].candidate));
    CHECK(before.reports().front().buckets[3].candidate == then[3].candidate);
    dispatcher.release(held);
    CHECK(runtime.prepare(small_norm).reports().front().buckets[3].candidate == then[3].candidate);
}

TEST_CASE("a stale winner is never dispatched") {
    Machine machine;
    cache::Trial stale = trial(4, other_candidate());
    stale.template_hash = std::string(32, 'a');
    store(machine.file(), {stale});
    Runtime runtime(machine.options());
    CHECK(runtime.prepare(small_norm).reports().front().buckets[2].origin == Origin::fallback);
    const Explanation explanation = runtime.explain(small_norm, 4);
    REQUIRE(explanation.passed_over.size() == 1);
    CHECK(to_string(explanation).find("stale") != std::string::npos);
}

TEST_CASE("another GPU's winner is taken and called foreign") {
    Machine machine;
    cache::Trial foreign = trial(4, other_candidate());
    foreign.key.gpu.name = "NVIDIA H100 PCIe";
    foreign.key.gpu.sm_count = 114;
    store(machine.file(), {foreign});
    Runtime runtime(machine.options());
    const BucketReport bucket = runtime.prepare(small_norm).reports().front().buckets[2];
    CHECK(bucket.origin == Origin::foreign);
    CHECK(bucket.trust == Trust::foreign);
    CHECK_FALSE(bucket.tune_command.empty());
}

TEST_CASE("a second process compiles nothing: its images come from the cache") {
    Machine machine;
    std::uint64_t compiled = 0;
    {
        Runtime first(machine.options());
        CHECK(static_cast<bool>(first.prepare(small_norm)));
        compiled = first.counters().compiles;
    }
    RuntimeOptions options = machine.options();
    options.allow_compile = false;
    Runtime second(options);
    CHECK(second.prepare(small_norm).reports().front().buckets[0].image == ImageOrigin::cached);
    CHECK(second.counters().compiles == 0);
    CHECK(second.counters().image_cache_hits == compiled);
    CHECK(machine.warnings.empty());
}

TEST_CASE("after freeze() a compile is an error, and what was prepared goes on") {
    Machine machine;
    Runtime runtime(machine.options());
    const RmsNormKernel norm = runtime.prepare(small_norm);
    runtime.freeze();
    CHECK(static_cast<bool>(runtime.prepare(small_norm)));
    const Error error = error_of([&] { return runtime.prepare(RmsNorm{.hidden = 8192, .max_rows = 1}); });
    CHECK(error.kind() == ErrorKind::frozen);
    CHECK(std::string(error.what()).find("hidden=8192") != std::string::npos);
    CHECK(norm.run(nullptr, test::untouched_args(), 1) == Status::ok);
}

TEST_CASE("a winner that no longer compiles gives way to the fallback with one warning") {
    Machine machine;
    const Candidate best = other_candidate();
    store(machine.file(), {trial(4, best), trial(8, best)});
    machine.script(fmt::format("compile:match=source={},{}={}:fail", best.variant->source,
                               best.variant->tunables[0].name, best.config[0]));
    Runtime runtime(machine.options());
    const RmsNormKernel norm = runtime.prepare(small_norm);
    CHECK(norm.reports().front().buckets[2].origin == Origin::fallback);
    CHECK(norm.reports().front().buckets[3].origin == Origin::fallback);
    CHECK_FALSE(norm.reports().front().buckets[2].note.empty());
    REQUIRE(machine.warnings.size() == 1);
    CHECK(machine.warnings[0].find(to_string(best)) != std::string::npos);
    CHECK(norm.run(nullptr, test::untouched_args(), 4) == Status::ok);
}

TEST_CASE("a winner whose image the driver refuses gives way to the fallback with one warning") {
    Machine machine;
    const Candidate best = other_candidate();
    store(machine.file(), {trial(4, best)});
    machine.script(fmt::format("load:match=source={},{}={}:fail=209", best.variant->source,
                               best.variant->tunables[0].name, best.config[0]));
    Runtime runtime(machine.options());
    CHECK(runtime.prepare(small_norm).reports().front().buckets[2].origin == Origin::fallback);
    CHECK(machine.warnings.size() == 1);
}

TEST_CASE("when nothing compiles, prepare() says what NVRTC said") {
    Machine machine("compile:fail");
    Runtime runtime(machine.options());
    const Error error = error_of([&] { return runtime.prepare(small_norm); });
    CHECK(error.kind() == ErrorKind::compile_failed);
    CHECK(error.where() == "prepare(RmsNorm)");
}

TEST_CASE("sizes that make no sense are refused by name, value and range") {
    Machine machine;
    Runtime runtime(machine.options());
    const auto message = [&](const RmsNorm& norm) {
        const Error error = error_of([&] { return runtime.prepare(norm); });
        CHECK(error.kind() == ErrorKind::bad_argument);
        return std::string(error.what());
    };
    for (const std::int64_t hidden :
         {std::int64_t{0}, std::int64_t{-1}, std::int64_t{262145}, INT64_MAX, INT64_MIN}) {
        const std::string text = message({.hidden = hidden});
        CHECK(text.find("'hidden'") != std::string::npos);
        CHECK(text.find(std::to_string(hidden)) != std::string::npos);
        CHECK(text.find("262144") != std::string::npos);
    }
    for (const std::int64_t rows : {std::int64_t{0}, std::int64_t{-5}, INT64_MAX}) {
        CHECK(message({.hidden = 64, .max_rows = rows}).find(fmt::format("max_rows is {}", rows)) !=
              std::string::npos);
    }
    CHECK(message({.hidden = 262144, .max_rows = 1 << 30}).find("2^40") != std::string::npos);
    CHECK(message({.hidden = 64, .dtype = Dtype::int8}).find("'int8'") != std::string::npos);
    CHECK(message({.hidden = 64, .dtype = static_cast<Dtype>(77)}).find("77") != std::string::npos);
    CHECK(message({.hidden = 64, .output = static_cast<NormOutput>(9)}).find("9") != std::string::npos);
    CHECK(error_of([&] { return runtime.explain(small_norm, 17); }).kind() == ErrorKind::bad_argument);
}

TEST_CASE("a damaged cache costs one warning and the fallbacks run") {
    Machine machine;
    std::ofstream(machine.file()) << std::string(8192, 'x');
    Runtime runtime(machine.options());
    CHECK(runtime.prepare(small_norm).reports().front().buckets[0].origin == Origin::fallback);
    CHECK(machine.warnings.size() == 1);
}

TEST_CASE("a cache in a place that cannot be written costs one warning") {
    Machine machine;
    std::ofstream(machine.folder() / "file") << "no folder";
    RuntimeOptions options = machine.options();
    options.cache_file = machine.folder() / "file" / "cache.db";
    Runtime runtime(options);
    CHECK(static_cast<bool>(runtime.prepare(small_norm)));
    CHECK(machine.warnings.size() == 1);
}

TEST_CASE("with no home there is no cache, one warning, and dispatch goes on") {
    Machine machine;
    const test::ScopedVariable cache("HONE_CACHE", std::nullopt);
    const test::ScopedVariable site("HONE_SITE_CACHE", std::nullopt);
    const test::ScopedVariable xdg("XDG_CACHE_HOME", std::nullopt);
    const test::ScopedVariable home("HOME", std::nullopt);
    RuntimeOptions options = machine.options();
    options.cache_file.clear();
    Runtime runtime(options);
    CHECK(static_cast<bool>(runtime.prepare(small_norm)));
    CHECK(machine.warnings.size() == 1);
}

TEST_CASE("HONE_CHECK_INDICES of another word than 0 and 1 is a warning") {
    for (const auto& [word, warnings] : {std::pair{"true", 1}, {"1 ", 1}, {"0", 0}, {"1", 0}}) {
        CAPTURE(word);
        Machine machine;
        const test::ScopedVariable variable("HONE_CHECK_INDICES", word);
        const Runtime runtime(machine.options());
        CHECK(std::ssize(machine.warnings) == warnings);
        if (!machine.warnings.empty())
            CHECK(machine.warnings[0] == std::string("HONE_CHECK_INDICES is '") + word +
                                             "', allowed: 0, 1; indices are not checked");
    }
}

TEST_CASE("use_cache = false leaves no trace on disk") {
    Machine machine;
    RuntimeOptions options = machine.options();
    options.use_cache = false;
    Runtime runtime(options);
    CHECK(static_cast<bool>(runtime.prepare(small_norm)));
    CHECK(fs::is_empty(machine.folder()));
}

TEST_CASE("a missing driver is told apart from other errors") {
    const test::ScopedVariable library("HONE_CUDA_LIBRARY", "/nonexistent/libcuda.so");
    const Error error = error_of([] { return Runtime(); });
    CHECK(error.kind() == ErrorKind::no_gpu);
    CHECK_FALSE(error.hint().empty());
}

TEST_CASE("a machine without a GPU and a device that does not exist are no_gpu") {
    {
        Machine machine("device:count=0");
        CHECK(error_of([&] { return Runtime(machine.options()); }).kind() == ErrorKind::no_gpu);
    }
    Machine machine;
    RuntimeOptions options = machine.options();
    options.device = 7;
    const Error error = error_of([&] { return Runtime(options); });
    CHECK(error.kind() == ErrorKind::no_gpu);
    CHECK(std::string(error.what()).find("device 7") != std::string::npos);
}

TEST_CASE("without NVRTC, images from the cache still run and everything else says what is missing") {
    Machine machine;
    const Candidate best = other_candidate();
    store(machine.file(), {trial(1, best), trial(2, best), trial(4, best), trial(8, best), trial(16, best)});
    {
        Runtime first(machine.options());
        CHECK(static_cast<bool>(first.prepare(small_norm)));
    }
    const test::ScopedVariable library("HONE_NVRTC_LIBRARY", "/nonexistent/libnvrtc.so");
    Runtime runtime(machine.options());
    const RmsNormKernel norm = runtime.prepare(small_norm);
    CHECK(norm.reports().front().buckets[0].image == ImageOrigin::cached);
    CHECK(norm.reports().front().buckets[0].trust == Trust::compatible);
    const Error error = error_of([&] { return runtime.prepare(RmsNorm{.hidden = 128}); });
    CHECK(error.kind() == ErrorKind::compile_failed);
    CHECK(std::string(error.what()).find("NVRTC") != std::string::npos);
}

TEST_CASE("a refused launch is a status, and the runtime remembers which kernel and why") {
    Machine machine("launch:fail=701");
    Runtime runtime(machine.options());
    const RmsNormKernel norm = runtime.prepare(small_norm);
    CHECK(runtime.last_launch_error().empty());
    CHECK(norm.run(nullptr, test::untouched_args(), 16) == Status::launch_failed);
    const std::string text = runtime.last_launch_error();
    CHECK(text.find(norm.reports().front().buckets[4].candidate) != std::string::npos);
    CHECK(text.find("701") != std::string::npos);
    CHECK(runtime.counters().failed_launches == 1);
    CHECK(runtime.counters().runs_fallback == 0);
}

TEST_CASE("kernels outlive their runtime, and release the device when the last of them goes") {
    Machine machine;
    {
        RmsNormKernel kept;
        {
            Runtime runtime(machine.options());
            kept = runtime.prepare(small_norm);
        }
        const RmsNormKernel copy = kept;
        kept = {};
        CHECK(copy.run(nullptr, test::untouched_args(), 2) == Status::ok);
    }
    CHECK(machine.fakes().live("module") == 0);
}

TEST_CASE("a thread that never touched CUDA may run a kernel and drop it") {
    Machine machine;
    Runtime runtime(machine.options());
    RmsNormKernel norm = runtime.prepare(small_norm);
    Status status = Status::launch_failed;
    std::jthread([&, mine = std::move(norm)]() mutable {
        status = mine.run(nullptr, test::untouched_args(), 2);
        mine = {};
    }).join();
    CHECK(status == Status::ok);
    CHECK(machine.fakes().live("module") == 0);
}

TEST_CASE("a runtime for the second GPU leaves the first one current") {
    Machine machine("device:count=2");
    Runtime first(machine.options());
    const auto driver = Driver::load();
    CUcontext before = nullptr;
    driver->cuCtxGetCurrent(&before);
    REQUIRE(before != nullptr);
    RuntimeOptions options = machine.options();
    options.device = 1;
    {
        Runtime second(options);
        CHECK(static_cast<bool>(second.prepare(small_norm)));
        CUcontext during = nullptr;
        driver->cuCtxGetCurrent(&during);
        CHECK(during == before);
    }
    CUcontext after = nullptr;
    driver->cuCtxGetCurrent(&after);
    CHECK(after == before);
}

TEST_CASE("explain names the kernel, the measurement, the runner-up and the fallback") {
    Machine machine;
    const Candidate best = other_candidate();
    const Candidate second = *fallback(problem_of(small_norm), traits());
    cache::Trial slower = trial(8, second);
    slower.winner = false;
    slower.timing.median_us = 2.5;
    store(machine.file(), {trial(8, best), slower});
    Runtime runtime(machine.options());
    const Explanation explanation = runtime.explain(small_norm, 7);
    CHECK(explanation.bucket.sizes[0].first == 5);
    CHECK(explanation.bucket.sizes[0].last == 8);
    CHECK(explanation.bucket.candidate == to_string(best));
    CHECK(explanation.measured_us == doctest::Approx(2.0));
    CHECK(explanation.layer == "user");
    CHECK(explanation.runner_up == to_string(second));
    CHECK(explanation.runner_up_us == doctest::Approx(2.5));
    const std::string text = to_string(explanation);
    for (const char* word : {"2.00 us", "+25.0 %", "exact", "user layer"})
        CHECK(text.find(word) != std::string::npos);
}

TEST_CASE("LayerNorm goes the same way, with its bias") {
    Machine machine;
    Runtime runtime(machine.options());
    const LayerNormKernel norm = runtime.prepare(LayerNorm{.hidden = 768, .max_rows = 4});
    LayerNormArgs args{.x = reinterpret_cast<void*>(0x10000),
                       .weight = reinterpret_cast<void*>(0x30000),
                       .out = reinterpret_cast<void*>(0x40000)};
    CHECK(norm.run(nullptr, args, 4) == Status::null_pointer);
    args.bias = reinterpret_cast<void*>(0x50000);
    CHECK(norm.run(nullptr, args, 4) == Status::ok);
    CHECK(norm.reports().front().problem.starts_with("layernorm "));
}

TEST_CASE(
    "an image in the cache that the driver no longer takes is compiled anew, with a warning that names it") {
    Machine machine;
    { static_cast<void>(Runtime(machine.options()).prepare(small_norm)); }
    machine.script("load:times=1:fail=209");
    Runtime runtime(machine.options());
    const RmsNormKernel norm = runtime.prepare(small_norm);
    CHECK(runtime.counters().compiles == 1);
    REQUIRE(machine.warnings.size() == 1);
    CHECK(machine.warnings[0].starts_with("the cached image of rmsnorm "));
    CHECK(norm.run(nullptr, test::untouched_args(), 4) == Status::ok);
}

TEST_CASE("a runtime that is moved goes on where it was") {
    Machine machine;
    Runtime first(machine.options());
    static_cast<void>(first.prepare(small_norm));
    Runtime second(std::move(first));
    CHECK(second.counters().prepares == 1);
    first = std::move(second);
    static_cast<void>(first.prepare(small_norm));
    CHECK(first.counters().prepares == 2);
}

TEST_CASE("an explanation names the bucket and the fallback of every operator with one family") {
    Machine machine;
    const Runtime runtime(machine.options());
    const auto check = [](const Explanation& explanation, const std::string& family) {
        CHECK(explanation.problem.starts_with(family + ' '));
        CHECK(explanation.bucket.origin == Origin::fallback);
        CHECK(explanation.bucket.candidate == explanation.fallback);
        REQUIRE_FALSE(explanation.bucket.sizes.empty());
        CHECK(explanation.bucket.sizes[0].first <= 7);
        CHECK(explanation.bucket.sizes[0].last >= 7);
    };
    check(runtime.explain(LayerNorm{.hidden = 768}, 7), "layernorm");
    check(runtime.explain(Embedding{.hidden = 768, .max_tokens = 64}, 7), "embedding");
    check(runtime.explain(Sample{.vocabulary = 32000, .max_rows = 64}, 7), "sample");
}

}  // namespace
}  // namespace hone::runtime
