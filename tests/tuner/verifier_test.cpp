// The verifier inside this process, on the fake driver: what it launches on which memory, and what it makes
// of the counts that come back. Kernels do nothing there; what the harness finds is written by the script.
#include "tuner/gpu/verifier.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "tests/support/fake_machine.h"

using namespace hone;
using namespace hone::tuner;
using cache::TrialStatus;

namespace {

constexpr std::string_view harness_image =
    "hone fake image 1\nsource harness/harness.cu\narch sm_90a\nconstants -\n"
    "kernel hone_fill 8 0 0 8,8,4,4,4,4,8\nkernel hone_compare 8 0 0 8,8,8,4,4,4,8\n"
    "kernel hone_count_differences 8 0 0 8,8,8,8\nkernel hone_count_other 8 0 0 8,8,4,8\n"
    "kernel hone_checksum 8 0 0 8,8,8\n";
constexpr std::string_view kernel_image =
    "hone fake image 1\nsource test/candidate.cu\narch sm_90a\nconstants -\nkernel candidate 8 0 0 "
    "8,8,8,8,8\n";

constexpr std::array<KernelArg, 5> kernel_args{pointer_arg(0, "a"), pointer_arg(1, "b"), pointer_arg(2, "c"),
                                               pointer_arg(3, "d"), pointer_arg(4, "e")};
const Kernel kernel{.name = "candidate", .args = kernel_args};

Plan plan_with(std::int64_t workspace_bytes) {
    Plan plan;
    plan.launch_count = 1;
    plan.launches[0] = {.kernel = &kernel, .block = {.x = 32}};
    plan.workspace_bytes = workspace_bytes;
    return plan;
}

const Argument y{.name = "y", .role = Role::output, .dtype = Dtype::bf16, .shape = {1, 1, 3, 100}};
const Argument x{.name = "x", .role = Role::input, .dtype = Dtype::bf16, .shape = {1, 1, 1, 200}};
const Argument w{.name = "w", .role = Role::weight, .dtype = Dtype::bf16, .shape = {1, 1, 1, 300}};
const Argument z{.name = "z", .role = Role::output, .dtype = Dtype::fp32, .shape = {1, 1, 1, 40}};
const Argument scratch{.name = "scratch", .role = Role::workspace, .dtype = Dtype::int8};

/// One launch: the kernel and its parameters, without the slot that the harness counts in.
using Launched = std::pair<std::string, std::vector<unsigned long long>>;

struct Bench {
    test::FakeMachine fakes;
    DeviceContext device{0};
    Harness harness{device.driver(), std::as_bytes(std::span(harness_image)), device.stream(), 1};
    InputSets sets{device, harness};
    Verifier verifier{device, harness, sets};
    runtime::LoadedPlan loaded{device.driver(), std::as_bytes(std::span(kernel_image)), plan_with(0)};
    std::vector<std::size_t> outputs;
    std::vector<std::size_t> inputs;
    int seen = 0;

    /// The error that is allowed is 0.5.
    explicit Bench(const std::string& script = "",
                   const std::vector<Argument>& arguments = {y, x, w, z, scratch})
        : fakes(script) {
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            if (arguments[i].role == Role::output) outputs.push_back(i);
            if (arguments[i].role == Role::input || arguments[i].role == Role::weight) inputs.push_back(i);
        }
        // So many bytes a call that two sets are enough, in memory that the fake driver really has.
        sets.prepare({.arguments = arguments,
                      .tolerances = std::vector<Tolerance>(arguments.size(), {.relative_l2 = 0.5}),
                      .scalars = {},
                      .reference_plan = plan_with(0),
                      .bytes_per_call = 1e12,
                      .seed = 1});
        for (const std::size_t i : outputs) fill(sets.address(0, i), 0, arguments[i].bytes());
    }

    std::chrono::milliseconds patience{30'000};  ///< long for a busy machine
    [[nodiscard]] Clock::time_point soon() const { return Clock::now() + patience; }
    Verdict begin(std::int64_t workspace_bytes = 0) {
        return verifier.begin(loaded, plan_with(workspace_bytes), soon());
    }
    Verdict verify(std::int64_t workspace_bytes = 0) {
        return verifier.verify(loaded, plan_with(workspace_bytes), soon());
    }
    /// Launches since the last call of this.
    std::vector<Launched> launched() {
        std::vector<Launched> list;
        for (; seen < fakes.launch_count(); ++seen) {
            const FakeLaunch& launch = *fakes.launch(seen);
            const std::string name = launch.kernel;
            const int count = launch.parameter_count - (name == "candidate" ? 0 : 1);
            list.emplace_back(name, std::vector(launch.parameters, launch.parameters + count));
            if (name == "hone_compare" || name == "hone_fill") list.back().second.resize(2);
        }
        return list;
    }
    [[nodiscard]] Launched launch_of(const Call& call) const {
        Launched launch{"candidate", {}};
        for (std::size_t i = 0; i < kernel_args.size(); ++i)
            launch.second.push_back(reinterpret_cast<unsigned long long>(call.pointers[i]));
        return launch;
    }
    [[nodiscard]] unsigned long long bytes_of(std::size_t i) const {
        return static_cast<unsigned long long>(sets.arguments()[i].bytes());
    }
    [[nodiscard]] std::vector<Launched> checksums() const {
        std::vector<Launched> list;
        for (const int set : {0, 1}) {
            for (const std::size_t i : inputs)
                list.push_back({"hone_checksum", {sets.address(set, i), bytes_of(i)}});
        }
        return list;
    }
    void fill(CUdeviceptr at, int value, std::int64_t bytes) const {
        std::fill_n(reinterpret_cast<unsigned char*>(at), bytes, static_cast<unsigned char>(value));
    }
    [[nodiscard]] bool holds(CUdeviceptr at, int value, std::int64_t bytes) const {
        const auto* memory = reinterpret_cast<const unsigned char*>(at);
        return std::all_of(memory, memory + bytes, [&](unsigned char byte) { return byte == value; });
    }
    [[nodiscard]] CUdeviceptr guard_before(std::size_t output) const {
        return sets.address(0, output) - guard_bytes;
    }
};

void append(std::vector<Launched>& list, const std::vector<Launched>& more) {
    list.insert(list.end(), more.begin(), more.end());
}

std::string on(const std::string& check, const std::string& what) {
    return "launch:match=kernel=hone_" + check + ":" + what + ";";
}

/// The comparison writes these sums, of squared differences and of squares.
std::string sums(double diff2, double ref2) {
    return on("compare", "write=6:value=" + std::to_string(std::bit_cast<long long>(diff2))) +
           on("compare", "write=6:offset=8:value=" + std::to_string(std::bit_cast<long long>(ref2)));
}

Verdict verdict_with(const std::string& script, std::int64_t workspace_bytes = 0) {
    Bench bench(script);
    REQUIRE(bench.begin().detail == "");
    return bench.verify(workspace_bytes);
}

void check_wrong(const Verdict& verdict, const std::string& detail) {
    CHECK(verdict.status == TrialStatus::wrong_result);
    CHECK(verdict.detail == detail);
}

}  // namespace

TEST_CASE("the reference runs on both sets, then the inputs are summed") {
    for (const std::vector<Argument>& arguments : {std::vector{y, x, w, z, scratch}, {x, y, z, scratch, w}}) {
        Bench bench("", arguments);
        (void)bench.launched();
        REQUIRE(bench.begin(512).detail == "");
        CHECK(bench.sets.workspace_bytes() == 512);
        std::vector<Launched> expected{bench.launch_of(bench.sets.reference_call(0)),
                                       bench.launch_of(bench.sets.reference_call(1))};
        append(expected, bench.checksums());
        CHECK(bench.launched() == expected);
    }
}

TEST_CASE(
    "a candidate runs on both sets and is compared, then nine more times, and nothing else is touched") {
    for (const std::vector<Argument>& arguments : {std::vector{y, x, w, z, scratch}, {x, y, z, scratch, w}}) {
        Bench bench("", arguments);
        REQUIRE(bench.begin().detail == "");
        for (const std::int64_t workspace_bytes : {512, 0, 1}) {
            (void)bench.launched();
            REQUIRE(bench.verify(workspace_bytes).detail == "");
            const InputSets& sets = bench.sets;
            std::vector<Launched> expected;
            for (const int set : {1, 0}) {
                expected.push_back(bench.launch_of(sets.call(set)));
                for (const std::size_t i : bench.outputs)
                    expected.push_back(
                        {"hone_compare", {sets.address(set, i), sets.reference_address(set, i)}});
            }
            for (int launch = 2; launch <= 10; ++launch) {
                expected.push_back(bench.launch_of(sets.call(0)));
                for (const std::size_t i : bench.outputs) {
                    expected.push_back({"hone_count_differences",
                                        {sets.address(0, i), sets.snapshot_address(i), bench.bytes_of(i)}});
                }
            }
            const auto expect_guards = [&](CUdeviceptr data, unsigned long long bytes) {
                expected.push_back({"hone_count_other", {data - 256, 256, 0xA5}});
                expected.push_back({"hone_count_other", {data + bytes, 256, 0xA5}});
            };
            for (const std::size_t i : bench.outputs) expect_guards(sets.address(0, i), bench.bytes_of(i));
            if (workspace_bytes > 0)
                expect_guards(sets.workspace_address(), static_cast<unsigned long long>(workspace_bytes));
            append(expected, bench.checksums());
            CHECK(bench.launched() == expected);
        }
    }
}

TEST_CASE("outputs are poisoned before a launch, and the first output is kept to be compared with") {
    Bench bench;
    REQUIRE(bench.begin().detail == "");
    for (const std::size_t i : bench.outputs)
        bench.fill(bench.sets.snapshot_address(i), 0, bench.bytes_of(i));
    REQUIRE(bench.verify().detail == "");
    for (const std::size_t i : bench.outputs) {
        CHECK(bench.holds(bench.sets.address(0, i), poison, bench.sets.arguments()[i].bytes()));
        CHECK(bench.holds(bench.sets.snapshot_address(i), poison, bench.sets.arguments()[i].bytes()));
    }
}

TEST_CASE("one bad element in any output of any set is wrong, and named with its place") {
    for (int comparison = 1; comparison <= 4; ++comparison) {
        const Argument& output = comparison % 2 == 1 ? y : z;  // of set 1, then of set 0
        const std::string only = ":after=" + std::to_string(comparison) + ":times=1";
        const std::string first =
            on("compare", "write=6:offset=32:value=" + std::to_string(output.elements() - 17) + only);
        const std::string name = "output " + std::string(output.name);
        check_wrong(verdict_with(first + on("compare", "write=6:offset=24:value=1" + only)),
                    name + ": 1 elements are not finite or were not written, the first at 17");
        check_wrong(verdict_with(first + on("compare", "write=6:offset=16:value=1" + only)),
                    name + ": 1 elements are beyond the tolerance, the first at 17; relative error 0.00e+00");
    }
}

TEST_CASE("the relative error may be as large as the tolerance; the largest of all is reported") {
    const Verdict equal = verdict_with(sums(0.0625, 0.25));
    CHECK(equal.detail == "");
    CHECK(equal.relative_l2 == 0.5);
    CHECK(verdict_with(sums(std::nextafter(0.0625, 0), 0.25)).detail == "");
    const Verdict above = verdict_with(sums(0.0626, 0.25));
    check_wrong(above, "output y: relative error 5.00e-01 is above 5.00e-01");
    CHECK(above.relative_l2 == std::sqrt(0.0626 / 0.25));
    check_wrong(verdict_with(sums(std::nan(""), 1)), "output y: relative error nan is above 5.00e-01");
    const std::string some =
        on("compare", "write=6:times=1:value=" + std::to_string(std::bit_cast<long long>(0.0625))) +
        sums(0.01, 1);
    CHECK(verdict_with(some).relative_l2 == doctest::Approx(0.1));
    CHECK(verdict_with(sums(0, 0)).relative_l2 == 0);
    CHECK(verdict_with(sums(0, 1)).detail == "");
}

TEST_CASE("a reference of zeros allows no difference at all") {
    CHECK(verdict_with(sums(0, 0)).detail == "");
    const Verdict verdict = verdict_with(sums(1e-30, 0));
    check_wrong(verdict, "output y: relative error inf is above 5.00e-01");
    CHECK(std::isinf(verdict.relative_l2));
}

TEST_CASE("one byte that a later launch wrote otherwise is a disagreement") {
    for (const Argument& output : {y, z}) {
        const std::string place = output.name == "y" ? ":after=1" : ":after=2";
        check_wrong(
            verdict_with(on("count_differences", "write=3:value=1:times=1" + place)),
            "launches disagree: output " + std::string(output.name) + " changed in 1 bytes over 10 launches");
    }
}

TEST_CASE("one byte outside the outputs or the workspace is wrong, and no relative error") {
    for (int place = 1; place <= 6; ++place) {
        const Verdict verdict =
            verdict_with(on("count_other", "write=3:value=1:times=1:after=" + std::to_string(place)), 512);
        check_wrong(verdict, std::string("wrote outside its ") + (place <= 4 ? "outputs" : "workspace") +
                                 ": 1 bytes of the guard zones changed");
        CHECK(verdict.relative_l2 == 0);
    }
}

TEST_CASE("guard zones are filled again after a candidate that wrote there, and only then") {
    for (const std::string& rule :
         {std::string("write=3:value=1:times=1"), std::string("write=3:value=1:times=1:after=5"),
          std::string("write=3:value=1")}) {  // one output's zone, the workspace's, all of them
        CAPTURE(rule);
        Bench bench(on("count_other", rule));
        REQUIRE(bench.begin().detail == "");
        bench.fill(bench.guard_before(3), 7, guard_bytes);
        CHECK(bench.verify(512).status == TrialStatus::wrong_result);
        CHECK(bench.holds(bench.guard_before(3), guard_pattern, guard_bytes));
    }
    Bench bench;
    REQUIRE(bench.begin().detail == "");
    bench.fill(bench.guard_before(3), 7, guard_bytes);
    CHECK(bench.verify(512).detail == "");
    CHECK(bench.holds(bench.guard_before(3), 7, guard_bytes));
}

TEST_CASE("inputs that changed in either set are wrong, and filled again for the next candidate") {
    for (int place = 1; place <= 4; ++place) {
        Bench bench(on("checksum", "write=2:value=9:times=1:after=" + std::to_string(4 + place)));
        REQUIRE(bench.begin().detail == "");
        (void)bench.launched();
        check_wrong(bench.verify(), "changed its inputs");
        std::vector<Launched> fills = bench.launched();
        std::erase_if(fills, [](const Launched& launch) { return launch.first != "hone_fill"; });
        CHECK(fills.size() == 4);
        CHECK(bench.verify().detail == "");
    }
}

TEST_CASE("a weight that calls append to is in no sum, and filled again behind every candidate") {
    Argument cache = w;
    cache.appended = true;
    Bench bench("", {y, x, cache, z, scratch});
    REQUIRE(bench.begin().detail == "");
    (void)bench.launched();
    CHECK(bench.verify().detail == "");
    const std::vector<Launched> launched = bench.launched();
    const auto count = [&](const std::string& kernel, CUdeviceptr address) {
        return std::ranges::count_if(launched, [&](const Launched& launch) {
            return launch.first == kernel && launch.second.front() == address;
        });
    };
    for (const int set : {0, 1}) {
        CHECK(count("hone_checksum", bench.sets.address(set, 1)) == 1);
        CHECK(count("hone_checksum", bench.sets.address(set, 2)) == 0);
        CHECK(count("hone_fill", bench.sets.address(set, 2)) == 1);
    }
}

TEST_CASE("inputs are held against what the reference found, and each problem's anew") {
    Bench always(on("checksum", "write=2:value=7"));
    REQUIRE(always.begin().detail == "");
    CHECK(always.verify().detail == "");
    Bench first(on("checksum", "write=2:value=7:times=4"));
    REQUIRE(first.begin().detail == "");
    REQUIRE(first.begin().detail == "");
    CHECK(first.verify().detail == "");
}

TEST_CASE("what one candidate did wrong is not held against the next") {
    Bench bench(on("compare", "write=6:offset=24:value=1:times=4") +
                on("count_differences", "write=3:value=1:times=18") +
                on("count_other", "write=3:value=1:times=4"));
    REQUIRE(bench.begin().detail == "");
    CHECK(bench.verify().status == TrialStatus::wrong_result);
    CHECK(bench.verify().detail == "");
}

TEST_CASE("a launch that the driver refuses ends the candidate there; of the reference, it says so") {
    const std::string refused = "the driver refused the launch: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)";
    Bench reference("launch:match=kernel=candidate:fail=701:after=2");
    const Verdict begun = reference.begin();
    CHECK(begun.status == TrialStatus::launch_failed);
    CHECK(begun.detail == "reference kernel: " + refused);
    for (const int launches : {1, 2, 3, 11}) {
        Bench bench("launch:match=kernel=candidate:fail=701:after=" + std::to_string(2 + launches));
        REQUIRE(bench.begin().detail == "");
        (void)bench.launched();
        const Verdict verdict = bench.verify();
        CHECK(verdict.status == TrialStatus::launch_failed);
        CHECK(verdict.detail == refused);
        const std::vector<Launched> list = bench.launched();
        CHECK(std::ranges::count(list, "candidate", &Launched::first) == launches - 1);
    }
}

TEST_CASE("a lost context is an exception that names the launch, and a kernel that never ends one as well") {
    Bench lost("launch:match=kernel=candidate:fail=700");
    CHECK_THROWS_WITH_AS((void)lost.begin(), doctest::Contains("launching the candidate"),
                         runtime::CudaError);
    Bench hung("launch:match=kernel=candidate:hang");
    hung.patience = std::chrono::milliseconds(300);
    CHECK_THROWS_AS((void)hung.begin(), DeadlinePassed);
}
