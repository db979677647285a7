// The fakes themselves: other tests rely on each of these behaviours.
#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

#include "runtime/cuda/launcher.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/stream.h"
#include "runtime/nvml/nvml.h"
#include "runtime/nvrtc/nvrtc.h"
#include "tests/support/fake_machine.h"

namespace hone::runtime {
namespace {

using test::FakeMachine;

constexpr KernelArg args[] = {pointer_arg(0, "out")};
constexpr Kernel kernel{"k", args};
const std::vector<std::string> options = {"--gpu-architecture=sm_90a"};

// A fake GPU on which a kernel of given constants can be launched.
struct Gpu {
    explicit Gpu(const std::string& script = "")
        : machine(script), driver(Driver::load()), context(driver, 0), stream(create_stream(*driver)) {
        plan.launch_count = 1;
        plan.launches[0] = Launch{.kernel = &kernel, .block = {128, 1, 1}};
    }
    [[nodiscard]] LoadedPlan load(int threads, const std::string& source = "family/variant.cu") const {
        const std::string constants =
            "struct Tuned {\n    static constexpr long long threads = " + std::to_string(threads) + ";\n};\n";
        const auto output = Nvrtc::load()->compile(
            "#include \"hone_constants.h\"\n"
            "extern \"C\" __global__ void k(unsigned long long* out) {}\n",
            source, {{"hone_constants.h", constants.c_str()}}, options);
        return LoadedPlan(*driver, output.cubin, plan);
    }
    CUresult launch(const LoadedPlan& loaded, CUdeviceptr pointer = 0) const {
        Call call;
        call.pointers[0] = reinterpret_cast<void*>(pointer);
        return runtime::launch(*driver, loaded, plan, call, stream.get());
    }
    CUresult query() const { return driver->cuStreamQuery(stream.get()); }
    double time_us(const LoadedPlan& loaded) const {
        const Event start = create_event(*driver);
        const Event stop = create_event(*driver);
        check(*driver, driver->cuEventRecord(start.get(), stream.get()), "record");
        check(*driver, launch(loaded), "launch");
        check(*driver, driver->cuEventRecord(stop.get(), stream.get()), "record");
        return elapsed_us(*driver, start.get(), stop.get());
    }

    FakeMachine machine;
    std::shared_ptr<const Driver> driver;
    PrimaryContext context;
    Stream stream;
    Plan plan;
};

TEST_CASE("a kernel's time depends on its config alone") {
    const Gpu gpu;
    const LoadedPlan small = gpu.load(64);
    const LoadedPlan large = gpu.load(256);
    const double first = gpu.time_us(small);
    CHECK(first > 1.0);
    CHECK(first < 20.0);
    CHECK(gpu.time_us(small) == doctest::Approx(first));
    CHECK(gpu.time_us(large) != doctest::Approx(first));
}

TEST_CASE("a graph takes the sum of its kernels' times") {
    const Gpu gpu;
    const LoadedPlan loaded = gpu.load(64);
    const double one = gpu.time_us(loaded);
    const GraphExec graph = capture_graph(*gpu.driver, gpu.stream.get(), [&] {
        for (int i = 0; i < 10; ++i) check(*gpu.driver, gpu.launch(loaded), "launch");
    });
    const Event start = create_event(*gpu.driver);
    const Event stop = create_event(*gpu.driver);
    gpu.driver->cuEventRecord(start.get(), gpu.stream.get());
    check(*gpu.driver, gpu.driver->cuGraphLaunch(graph.get(), gpu.stream.get()), "graph");
    gpu.driver->cuEventRecord(stop.get(), gpu.stream.get());
    CHECK(elapsed_us(*gpu.driver, start.get(), stop.get()) == doctest::Approx(10 * one).epsilon(1e-4));
    CHECK(reached(*gpu.driver, stop.get()));
}

TEST_CASE("the script sets a config's time, and noise moves it") {
    const Gpu gpu("launch:match=threads=64:us=5;noise:percent=2:seed=3");
    const LoadedPlan loaded = gpu.load(64);
    const double first = gpu.time_us(loaded);
    const double second = gpu.time_us(loaded);
    CHECK(first == doctest::Approx(5.0).epsilon(0.1));
    CHECK(first != second);
}

TEST_CASE("a fault is found after the launch that the script names, and stays") {
    const Gpu gpu("launch:match=threads=64:fail=700:after=7");
    const LoadedPlan good = gpu.load(128);
    const LoadedPlan bad = gpu.load(64);
    CHECK(gpu.launch(good) == CUDA_SUCCESS);
    for (int i = 0; i < 6; ++i) REQUIRE(gpu.launch(bad) == CUDA_SUCCESS);
    CHECK(gpu.query() == CUDA_SUCCESS);
    CHECK(gpu.launch(bad) == CUDA_SUCCESS);
    CHECK(gpu.query() == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(gpu.launch(good) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CUdeviceptr address = 0;
    CHECK(gpu.driver->cuMemAlloc(&address, 16) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("an error that is not sticky is returned by its launch alone") {
    const Gpu gpu("launch:fail=701:times=1");
    const LoadedPlan loaded = gpu.load(64);
    CHECK(gpu.launch(loaded) == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    CHECK(gpu.launch(loaded) == CUDA_SUCCESS);
}

TEST_CASE("threads=64 does not match threads=640") {
    const Gpu gpu("launch:match=threads=64:fail=1");
    const LoadedPlan loaded = gpu.load(640);
    CHECK(gpu.launch(loaded) == CUDA_SUCCESS);
}

TEST_CASE("a hanging kernel leaves its stream not ready, and earlier events reached") {
    const Gpu gpu("launch:match=variant:hang");
    const LoadedPlan loaded = gpu.load(64);
    const Event before = create_event(*gpu.driver);
    const Event after = create_event(*gpu.driver);
    gpu.driver->cuEventRecord(before.get(), gpu.stream.get());
    REQUIRE(gpu.launch(loaded) == CUDA_SUCCESS);
    gpu.driver->cuEventRecord(after.get(), gpu.stream.get());
    CHECK(reached(*gpu.driver, before.get()));
    CHECK_FALSE(reached(*gpu.driver, after.get()));
    CHECK(gpu.query() == CUDA_ERROR_NOT_READY);
}

TEST_CASE("a kernel writes what the script says, when the one before it was the one to blame") {
    const Gpu gpu("launch:match=harness/:previous=threads=64:write=0:offset=8:value=5");
    const LoadedPlan good = gpu.load(128);
    const LoadedPlan bad = gpu.load(64);
    const LoadedPlan compare = gpu.load(1, "harness/harness.cu");
    const DeviceBuffer<std::uint64_t> slots(*gpu.driver, 2);
    const auto compared_after = [&](const LoadedPlan& candidate) {
        upload(*gpu.driver, slots.span(), std::vector<std::uint64_t>{0, 0});
        check(*gpu.driver, gpu.launch(candidate), "candidate");
        check(*gpu.driver, gpu.launch(compare, slots.address()), "compare");
        return download(*gpu.driver, slots.span());
    };
    CHECK(compared_after(good) == std::vector<std::uint64_t>{0, 0});
    CHECK(compared_after(bad) == std::vector<std::uint64_t>{0, 5});
    CHECK(compared_after(good) == std::vector<std::uint64_t>{0, 0});
}

TEST_CASE("a rule with a file fires once in any number of processes") {
    const auto file = std::filesystem::temp_directory_path() / ("fake_once_" + std::to_string(getpid()));
    for (const CUresult expected : {CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS}) {
        const Gpu gpu("launch:fail=1:once=" + file.string());
        const LoadedPlan loaded = gpu.load(64);
        CHECK(gpu.launch(loaded) == expected);
    }
    std::filesystem::remove(file);
}

TEST_CASE("large memory is an address range that reads as zeros") {
    const Gpu gpu;
    const DeviceBuffer<std::uint32_t> large(*gpu.driver, 1 << 28);
    const DeviceBuffer<std::uint32_t> small(*gpu.driver, 2);
    upload(*gpu.driver, small.span(), std::vector<std::uint32_t>{1, 2});
    check(*gpu.driver, gpu.driver->cuMemsetD32Async(large.address(), 7, large.size(), gpu.stream.get()),
          "set");
    check(*gpu.driver, gpu.driver->cuMemcpyDtoDAsync(small.address(), large.address(), 8, gpu.stream.get()),
          "copy");
    CHECK(download(*gpu.driver, small.span()) == std::vector<std::uint32_t>{0, 0});
    CHECK(gpu.driver->cuMemsetD32Async(large.address(), 7, large.size() + 1, gpu.stream.get()) ==
          CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the fake compiler fails, spills and slows down as the script says") {
    const FakeMachine machine("compile:match=bad:fail;compile:match=threads=64:spill=128:registers=255");
    const auto nvrtc = Nvrtc::load();
    CHECK_THROWS_WITH_AS(static_cast<void>(nvrtc->compile("", "x/bad.cu", {}, options)),
                         doctest::Contains("error: the script says"), NvrtcError);
    const char* constants = "static constexpr long long threads = 64;\n";
    const auto output = nvrtc->compile("extern \"C\" __global__ void k() {}", "x/good.cu",
                                       {{"hone_constants.h", constants}}, options);
    CHECK(output.log.find("128 bytes spill stores, 128 bytes spill loads") != std::string::npos);
    CHECK(output.log.find("Used 255 registers") != std::string::npos);
}

TEST_CASE("throttling comes and goes with the number of queries") {
    const FakeMachine machine("nvml:throttle=0x40:after=2:times=1");
    const auto device = NvmlDevice::open("0000:1B:00.0");
    CHECK_FALSE(device->clocks()->throttled());
    CHECK(device->clocks()->throttled());
    CHECK_FALSE(device->clocks()->throttled());
}

}  // namespace
}  // namespace hone::runtime
