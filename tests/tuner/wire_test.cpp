// Messages between the measurer and its worker: nothing is lost on the way. That nothing a worker says can do
// harm is what tests/fuzz/targets/wire.cpp checks.
#include "tuner/measure/wire.h"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include <fstream>

#include "tests/tuner/fake_gpu.h"
#include "tuner/errors.h"

using namespace hone;
using namespace hone::tuner;
using namespace hone::test;
using nlohmann::json;

namespace {

ProblemSetup setup(const Problem& problem = norm_problem(16)) {
    const Family& family = *problem.family;
    ProblemSetup made{.arguments = family.arguments(problem),
                      .tolerances = {},
                      .scalars = {},
                      .reference_plan = family.reference_plan(problem),
                      .bytes_per_call = 1e6,
                      .seed = ~0ULL};
    made.tolerances.resize(made.arguments.size(), Tolerance{1e-3, 1e-2, 1e-1});
    for (const ScalarArgument& scalar : family.scalars(problem)) made.scalars.push_back(scalar.tuning_value);
    return made;
}

/// With lengths and a page table: indices and their fills.
Problem paged_problem() {
    std::string error;
    const auto problem = parse_problem(
        "attention_decode dtype=bf16 lengths=yes page_size=16 heads=8 kv_heads=2 "
        "head_dim=64 batch=3 kv_len=100",
        &error);
    if (!problem) throw std::runtime_error(error);
    return *problem;
}

Plan plan_with_tensor_maps() {
    Plan plan = setup().reference_plan;
    plan.tensor_map_count = 2;
    plan.tensor_maps[0] = {
        .pointer = 3,
        .dtype = Dtype::fp16,
        .rank = 4,
        .swizzle_bytes = 64,
        .extents = {64, 4096, 32, 4000000000},
        .stride_scalars = {1, TensorMap::no_gaps, 3},
        .box = {32, 256, 1, 1},
        .offset_bytes = 768,
        .extent_scalars = {TensorMap::fixed, 23, TensorMap::fixed, TensorMap::fixed, TensorMap::fixed}};
    plan.tensor_maps[1] = {};
    static constexpr KernelArg args[] = {tensor_map_arg(1, "map"), narrow_arg(2, "n"), pointer_arg(0, "x")};
    static constexpr Kernel kernel{"mapped", args};
    plan.launches[0].kernel = &kernel;
    plan.value_count = 2;
    plan.values[0] = {.number = -4096};
    plan.values[1] = {.number = std::int64_t{1} << 40, .pointer = 6};
    plan.launches[0].substitution_count = 1;
    plan.launches[0].substitutions[0] = {.arg = 2, .value = 1};
    return plan;
}

/// A worker executable that runs this shell line.
std::string script(const Scratch& scratch, const std::string& line) {
    const auto file = scratch.path("worker.sh");
    std::ofstream(file) << "#!/bin/sh\n" << line << '\n';
    chmod(file.c_str(), 0700);
    return file.string();
}

/// Images for workers that never get so far as to load one.
class NothingInside final : public HarnessImages {
  public:
    [[nodiscard]] ImageSource::Result harness() override { return {.detail = {}, .image = {}}; }
    [[nodiscard]] ImageSource::Result reference(const Problem&) override { return harness(); }
    [[nodiscard]] bool has_reference(const Problem&) const override { return true; }
};

}  // namespace

TEST_CASE("plans, problems, devices and samples arrive as they were sent") {
    NameTable names;
    const json sent = to_json(setup());
    CHECK(to_json(problem_setup_from_json(sent, names)) == sent);
    const json indexed = to_json(setup(paged_problem()));
    CHECK(to_json(problem_setup_from_json(indexed, names)) == indexed);
    const Problem routed =
        *parse_problem("expert_linear dtype=bf16 experts=8 top_k=2 in=64 out=64 tokens=16");
    const json uneven = to_json(setup(routed));  // starts are an uneven ramp, the last kind of fill
    CHECK(to_json(problem_setup_from_json(uneven, names)) == uneven);
    const Candidate candidate = ranked_candidate(0);
    const DeviceTraits traits = *representative_device({9, 0, true});
    const json call =
        to_json(CandidateCall{"image", candidate.variant->plan(norm_problem(64), candidate.config, traits)});
    CHECK(to_json(candidate_call_from_json(call, names)) == call);
    const json plan = to_json(plan_with_tensor_maps());
    CHECK(to_json(plan_from_json(plan, names)) == plan);
    const json device = to_json(made_up_device());
    CHECK(to_json(device_info_from_json(device)) == device);
    const json samples = to_json(
        Samples{.verdict = {.detail = "why"}, .us = {1.5, 2.25}, .energy_mj = 3, .sm_clock_mhz = 1755});
    CHECK(to_json(samples_from_json(samples)) == samples);
    const auto is_refused = [&](const char* member, const json& value) {
        json wrong = samples;
        wrong[member] = value;
        CHECK_THROWS_AS((void)samples_from_json(wrong), ProtocolError);
    };
    for (const int mhz : {-1, 1'000'001}) is_refused("sm_clock_mhz", mhz);
    for (const double us : {-1.0, 1.1e15}) is_refused("us", json::array({us}));
    is_refused("energy_mj", 1.1e15);
    const json sustained = to_json(Sustained{
        .verdict = {.detail = "why"}, .us = 2.5, .power_w = 350, .counted = true, .seconds = 2, .calls = 7});
    CHECK(to_json(sustained_from_json(sustained)) == sustained);
}

TEST_CASE("workers that die, are silent or talk nonsense end in an error that says so, not in a crash") {
    const FakeMachine fakes;
    const Scratch scratch;
    NothingInside images;
    const Problem problem = norm_problem(64);
    GpuMeasurerOptions options = quick_limits();
    options.start_limit = std::chrono::milliseconds(100);
    options.grace = std::chrono::milliseconds(50);
    for (const char* line : {"exit 7", "head -c 5000 /dev/urandom >&3", "exec sleep 100", "kill -SEGV $$"}) {
        CAPTURE(line);
        setenv("HONE_WORKER_EXECUTABLE", script(scratch, line).c_str(), 1);
        GpuMeasurer measurer(first_gpu(), options);
        measurer.use_images(images);
        CHECK_THROWS_WITH_AS((void)measurer.begin_problem(problem), doctest::Contains("5 measuring workers"),
                             WorkerError);
    }
    setenv("HONE_WORKER_EXECUTABLE", "/nowhere/at/all", 1);
    GpuMeasurer measurer(first_gpu(), options);
    CHECK_THROWS_AS((void)measurer.begin_problem(problem), WorkerError);
    unsetenv("HONE_WORKER_EXECUTABLE");
}
