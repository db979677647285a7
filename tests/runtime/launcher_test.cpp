#include "runtime/cuda/launcher.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "kernel_templates/kit/launches.h"
#include "runtime/cuda/stream.h"
#include "runtime/nvrtc/nvrtc.h"
#include "tests/support/fake_machine.h"

namespace hone::runtime {
namespace {

using test::FakeMachine;

constexpr const char* source =
    "extern \"C\" __global__ void __launch_bounds__((128 + 1))\n"
    "    first(const float* x, float* y, long long rows, int n) {}\n"
    "extern \"C\" __global__ void second(float* y) {}\n";

constexpr KernelArg first_args[] = {pointer_arg(2, "x"), pointer_arg(0, "y"), scalar_arg(1, "rows"),
                                    narrow_arg(0, "n")};
constexpr Kernel first_kernel{"first", first_args};
constexpr KernelArg second_args[] = {pointer_arg(1, "y")};
constexpr Kernel second_kernel{"second", second_args};
constexpr Kernel third_kernel{"third", {}};

// A fake GPU with the two kernels compiled for it.
struct Loaded {
    explicit Loaded(const std::string& script = "", const std::string& arch = "sm_90a",
                    const std::string& text = source)
        : machine(script), driver(Driver::load()), context(driver, 0), stream(create_stream(*driver)) {
        cubin = Nvrtc::load()->compile(text, "test/two.cu", {}, {"--gpu-architecture=" + arch}).cubin;
    }
    [[nodiscard]] std::string refusal(const Plan& plan) const {
        try {
            const LoadedPlan loaded(*driver, cubin, plan);
        } catch (const CudaError& error) {
            return error.what();
        }
        return "none";
    }

    FakeMachine machine;
    std::shared_ptr<const Driver> driver;
    PrimaryContext context;
    Stream stream;
    std::vector<std::byte> cubin;
};

Launch first_launch() {
    Launch launch;
    launch.kernel = &first_kernel;
    launch.grid = {8, 2, 1};
    launch.block = {128, 1, 1};
    return launch;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST_CASE("a plan's launches reach the driver in order, with the call's arguments where the plan says") {
    const Loaded gpu;
    Plan plan = plan_of(first_launch());
    plan.launch_count = 2;
    plan.launches[1] = Launch{.kernel = &second_kernel};
    const LoadedPlan loaded(*gpu.driver, gpu.cubin, plan);
    CHECK(loaded.entry(0).function != loaded.entry(1).function);

    Call call;
    call.pointers = {reinterpret_cast<void*>(0x1000), reinterpret_cast<void*>(0x2000),
                     reinterpret_cast<void*>(0x3000)};
    call.scalars = {Scalar::of(std::int64_t{-7}), Scalar::of(std::int64_t{1} << 40)};
    REQUIRE(launch(*gpu.driver, loaded, plan, call, gpu.stream.get()) == CUDA_SUCCESS);

    REQUIRE(gpu.machine.launch_count() == 2);
    const FakeLaunch first = *gpu.machine.launch(0);
    CHECK(std::string(first.kernel) == "first");
    CHECK(first.grid[0] == 8);
    CHECK(first.grid[1] == 2);
    CHECK(first.block[0] == 128);
    CHECK(first.extended == 0);
    REQUIRE(first.parameter_count == 4);
    CHECK(first.parameters[0] == 0x3000);
    CHECK(first.parameters[1] == 0x1000);
    CHECK(first.parameters[2] == 1ull << 40);
    CHECK(first.parameters[3] == 0xfffffff9u);  // an int takes the low four bytes
    const FakeLaunch second = *gpu.machine.launch(1);
    CHECK(std::string(second.kernel) == "second");
    CHECK(second.parameters[0] == 0x2000);
}

TEST_CASE("tensor maps are made of the call's pointers and strides, and handed to the kernel by value") {
    const Loaded gpu("", "sm_90a",
                     "extern \"C\" __global__ void mapped(const __grid_constant__ hone::TensorMap x,\n"
                     "    const __grid_constant__ hone::TensorMap y, int n) {}\n");
    constexpr static KernelArg args[] = {tensor_map_arg(1, "x"), tensor_map_arg(0, "y"), narrow_arg(0, "n")};
    constexpr static Kernel mapped{"mapped", args};
    Launch launch_mapped;
    launch_mapped.kernel = &mapped;
    launch_mapped.grid = {1, 1, 1};
    launch_mapped.block = {128, 1, 1};
    Plan plan = plan_of(launch_mapped);
    plan.tensor_map_count = 2;
    plan.tensor_maps[0] = {
        .pointer = 0, .swizzle_bytes = 128, .extents = {4096, 77}, .stride_scalars = {1}, .box = {64, 128}};
    plan.tensor_maps[1] = plan.tensor_maps[0];
    plan.tensor_maps[1].pointer = 2;
    const LoadedPlan loaded(*gpu.driver, gpu.cubin, plan);

    Call call;
    call.pointers = {reinterpret_cast<void*>(0x1000), nullptr, reinterpret_cast<void*>(0x3000)};
    call.scalars = {Scalar::of(std::int64_t{5}), Scalar::of(std::int64_t{4096})};
    REQUIRE(launch(*gpu.driver, loaded, plan, call, gpu.stream.get()) == CUDA_SUCCESS);
    const FakeLaunch record = *gpu.machine.launch(0);
    REQUIRE(record.parameter_count == 3);
    CHECK(record.parameters[0] == 0x3000);
    CHECK(record.parameters[1] == 0x1000);
    CHECK(record.parameters[2] == 5);

    call.scalars[1] = Scalar::of(std::int64_t{4097});  // 8194 bytes from row to row
    CHECK(launch(*gpu.driver, loaded, plan, call, gpu.stream.get()) == CUDA_ERROR_INVALID_VALUE);
    call.scalars[1] = Scalar::of(std::int64_t{4096});
    plan.tensor_maps[0].box[0] = 65;  // wider than the swizzle
    CHECK(launch(*gpu.driver, loaded, plan, call, gpu.stream.get()) == CUDA_ERROR_INVALID_VALUE);
    CHECK(gpu.machine.launch_count() == 1);
}

TEST_CASE("a launch may read what an earlier one wrote into the workspace, as numbers and as a tensor map") {
    const Loaded gpu("", "sm_90a",
                     "extern \"C\" __global__ void mapped(const __grid_constant__ hone::TensorMap x,\n"
                     "    float* y, long long stride) {}\n");
    constexpr static KernelArg args[] = {tensor_map_arg(0, "x"), pointer_arg(0, "y"),
                                         scalar_arg(0, "stride")};
    constexpr static Kernel mapped{"mapped", args};
    Launch launch_mapped;
    launch_mapped.kernel = &mapped;
    launch_mapped.grid = {1, 1, 1};
    launch_mapped.block = {128, 1, 1};
    substitute(launch_mapped, args[1], 1);
    substitute(launch_mapped, args[2], 0);
    Plan plan = plan_of(launch_mapped);
    plan.tensor_map_count = 1;
    plan.tensor_maps[0] = {.pointer = 1,
                           .swizzle_bytes = 128,
                           .extents = {4096, 77},
                           .stride_scalars = {TensorMap::no_gaps},
                           .box = {64, 128},
                           .offset_bytes = 512};
    plan.value_count = 2;
    plan.values[0] = {.number = 4096};
    plan.values[1] = {.number = 512, .pointer = 1};
    const LoadedPlan loaded(*gpu.driver, gpu.cubin, plan);

    Call call;
    call.pointers = {nullptr, reinterpret_cast<void*>(0x10000)};
    REQUIRE(launch(*gpu.driver, loaded, plan, call, gpu.stream.get()) == CUDA_SUCCESS);
    const FakeLaunch record = *gpu.machine.launch(0);
    REQUIRE(record.parameter_count == 3);
    CHECK(record.parameters[0] == 0x10200);
    CHECK(record.parameters[1] == 0x10200);
    CHECK(record.parameters[2] == 4096);

    plan.tensor_maps[0].extents[0] = 4097;  // 8194 bytes from row to row
    CHECK(launch(*gpu.driver, loaded, plan, call, gpu.stream.get()) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("clusters and programmatic launches are asked for with attributes, plain ones without") {
    const Loaded gpu;
    Launch clustered = first_launch();
    clustered.cluster = {4, 1, 1};
    clustered.programmatic = true;
    const Plan plan = plan_of(clustered);
    const LoadedPlan loaded(*gpu.driver, gpu.cubin, plan);
    REQUIRE(launch(*gpu.driver, loaded, plan, {}, gpu.stream.get()) == CUDA_SUCCESS);
    const FakeLaunch record = *gpu.machine.launch(0);
    CHECK(record.extended == 1);
    CHECK(record.programmatic == 1);
    CHECK(record.cluster[0] == 4);
}

TEST_CASE("a cluster of sixteen blocks is allowed when the plan is loaded") {
    const Loaded gpu;
    Launch clustered = first_launch();
    clustered.grid = {16, 1, 1};
    clustered.cluster = {16, 1, 1};
    const Plan plan = plan_of(clustered);
    const LoadedPlan loaded(*gpu.driver, gpu.cubin, plan);
    CHECK(launch(*gpu.driver, loaded, plan, {}, gpu.stream.get()) == CUDA_SUCCESS);
}

TEST_CASE("shared memory above 48 KiB is allowed when the plan is loaded") {
    const Loaded gpu;
    Launch large = first_launch();
    large.shared_bytes = 200 * 1024;
    const Plan plan = plan_of(large);
    const LoadedPlan loaded(*gpu.driver, gpu.cubin, plan);
    CHECK(launch(*gpu.driver, loaded, plan, {}, gpu.stream.get()) == CUDA_SUCCESS);
    CHECK(gpu.machine.launch(0)->shared_bytes == 200 * 1024);
}

TEST_CASE("one kernel launched twice by a plan keeps the larger shared memory limit") {
    const Loaded gpu;
    Plan plan = plan_of(first_launch());
    plan.launch_count = 2;
    plan.launches[0].shared_bytes = 100 * 1024;
    plan.launches[1] = plan.launches[0];
    plan.launches[1].shared_bytes = 60 * 1024;
    const LoadedPlan loaded(*gpu.driver, gpu.cubin, plan);
    CHECK(launch(*gpu.driver, loaded, plan, {}, gpu.stream.get()) == CUDA_SUCCESS);
}

TEST_CASE("a plan that the GPU cannot run is refused with kernel and numbers") {
    const Loaded gpu;
    Launch launch = first_launch();
    SUBCASE("too much shared memory") {
        launch.shared_bytes = 300'000;
        const std::string refusal = gpu.refusal(plan_of(launch));
        CHECK(contains(refusal, "kernel first"));
        CHECK(contains(refusal, "300000 dynamic"));
        CHECK(contains(refusal, "this GPU allows 232448"));
    }
    SUBCASE("too many threads") {
        launch.block = {64, 32, 1};
        CHECK(contains(gpu.refusal(plan_of(launch)),
                       "kernel first: 2048 threads per block, its image allows 1024"));
    }
    SUBCASE("a kernel that the image does not have") {
        launch.kernel = &third_kernel;
        CHECK(contains(gpu.refusal(plan_of(launch)), "kernel third: CUDA_ERROR_NOT_FOUND (500)"));
    }
}

TEST_CASE("a cluster is refused on a GPU without clusters") {
    const Loaded gpu("device:kind=a10", "sm_86");
    Launch launch = first_launch();
    launch.cluster = {2, 1, 1};
    CHECK(contains(gpu.refusal(plan_of(launch)),
                   "kernel first: a cluster of 2 blocks, this GPU has no clusters"));
}

TEST_CASE("an image for another GPU says what may be wrong") {
    const Loaded gpu("device:kind=a10", "sm_90a");
    CHECK(contains(gpu.refusal(plan_of(first_launch())), "compiled for another GPU"));
}

TEST_CASE("a failed launch leaves out the later ones") {
    const Loaded gpu("launch:match=kernel=first:fail=701");
    Plan plan = plan_of(first_launch());
    plan.launch_count = 2;
    plan.launches[1] = plan.launches[0];
    plan.launches[1].kernel = &second_kernel;
    const LoadedPlan loaded(*gpu.driver, gpu.cubin, plan);
    CHECK(launch(*gpu.driver, loaded, plan, {}, gpu.stream.get()) == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    CHECK(gpu.machine.launch_count() == 0);
}

TEST_CASE("an image is unloaded with its plan") {
    const Loaded gpu;
    {
        const LoadedPlan loaded(*gpu.driver, gpu.cubin, plan_of(first_launch()));
        CHECK(gpu.machine.live("module") == 1);
    }
    CHECK(gpu.machine.live("module") == 0);
    Launch unknown = first_launch();
    unknown.kernel = &third_kernel;
    CHECK(gpu.refusal(plan_of(unknown)) != "none");
    CHECK(gpu.machine.live("module") == 0);
}

}  // namespace
}  // namespace hone::runtime
