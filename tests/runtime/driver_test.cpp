// Starts threads: the thread sanitizer runs this file, too.
#include "runtime/cuda/driver.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "tests/support/fake_machine.h"

namespace hone::runtime {
namespace {

using test::FakeMachine;
using test::ScopedVariable;

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

template <class Error>
std::string load_error() {
    try {
        static_cast<void>(Driver::load());
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

// A copy of the fake driver without one function: its name is overwritten wherever it stands.
std::filesystem::path driver_without(const std::string& function,
                                     const std::filesystem::path& of = HONE_FAKE_CUDA) {
    std::ifstream original(of, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(original), {}};
    const std::string name = '\0' + function + '\0';
    for (auto at = bytes.find(name); at != std::string::npos; at = bytes.find(name, at + 1))
        bytes[at + 1] = 'X';
    const auto copy = std::filesystem::temp_directory_path() /
                      ("fake_cuda_without_" + function + "_" + std::to_string(getpid()) + ".so");
    std::ofstream(copy, std::ios::binary) << bytes;
    return copy;
}

TEST_CASE("a driver that does not exist is reported with its place and what to do") {
    const ScopedVariable variable("HONE_CUDA_LIBRARY", "/nowhere/libcuda.so.1");
    try {
        static_cast<void>(Driver::load());
        FAIL("loaded");
    } catch (const LibraryError& error) {
        CHECK(contains(error.what(), "/nowhere/libcuda.so.1"));
        CHECK(contains(error.hint(), "Install the NVIDIA driver"));
    }
}

TEST_CASE("a driver without a function is too old, and says which function and version") {
    const FakeMachine machine("driver:version=11040;nvml:none");
    const auto library = driver_without("cuLaunchKernelEx");
    const ScopedVariable variable("HONE_CUDA_LIBRARY", library.string());
    const std::string message = load_error<LibraryError>();
    CHECK(contains(message, "driver too old: version 11.4"));
    CHECK(contains(message, "cuLaunchKernelEx"));
    CHECK(contains(message, "needs at least 525"));
    std::filesystem::remove(library);
}

TEST_CASE("a driver before 570 gives its older event timer") {
    const FakeMachine machine;
    const auto library = driver_without("cuEventElapsedTime_v2");
    const ScopedVariable variable("HONE_CUDA_LIBRARY", library.string());
    const auto driver = Driver::load();
    CHECK((driver->cuEventElapsedTime != nullptr));
    CHECK(driver->library_path() == library.string());
    std::filesystem::remove(library);
}

TEST_CASE("the older event timer does not hide that another function is missing") {
    const FakeMachine machine;
    const auto older = driver_without("cuEventElapsedTime_v2");
    const auto library = driver_without("cuLaunchKernelEx", older);
    const ScopedVariable variable("HONE_CUDA_LIBRARY", library.string());
    CHECK(contains(load_error<LibraryError>(), "has no cuLaunchKernelEx"));
    std::filesystem::remove(older);
    std::filesystem::remove(library);
}

TEST_CASE("a machine without a GPU is a CUDA error that says so") {
    const FakeMachine machine("device:count=0");
    const std::string message = load_error<CudaError>();
    CHECK(contains(message, "CUDA_ERROR_NO_DEVICE (100)"));
    CHECK(contains(message, "CUDA_VISIBLE_DEVICES"));
}

TEST_CASE("a driver that does not fit its kernel module says to reboot") {
    const FakeMachine machine("driver:init=803");
    CHECK(contains(load_error<CudaError>(), "reboot"));
}

TEST_CASE("every GPU of the machine is described") {
    const FakeMachine machine("device:kind=h100+a10");
    const auto driver = Driver::load();
    REQUIRE(driver->device_count() == 2);

    const DeviceTraits h100 = device_traits(*driver, 0);
    CHECK(h100.name == "NVIDIA H100 80GB HBM3");
    CHECK(h100.compute_major == 9);
    CHECK(h100.sm_count == 132);
    CHECK(h100.max_shared_bytes_per_block == 232448);
    CHECK(h100.memory_bytes_per_s == doctest::Approx(3.352e12).epsilon(0.001));
    CHECK(h100.arch() == Arch{9, 0, true});

    const DeviceTraits a10 = device_traits(*driver, 1);
    CHECK(a10.compute_major == 8);
    CHECK(a10.compute_minor == 6);
    CHECK(a10.memory_bytes_per_s == doctest::Approx(600e9).epsilon(0.001));
    CHECK(pci_bus_id(*driver, 0) != pci_bus_id(*driver, 1));
    CHECK(device_uuid(*driver, 1) == "GPU-02020202-0202-0202-0202-020202020202");
    CHECK_THROWS_AS(static_cast<void>(device_traits(*driver, 2)), CudaError);
}

TEST_CASE("a GPU's key holds its kind, and a MIG slice's profile apart from the name") {
    const FakeMachine machine("device:kind=h100+mig");
    const auto driver = Driver::load();
    const cache::GpuKey whole = gpu_key(*driver, 0);
    CHECK(whole.name == "NVIDIA H100 80GB HBM3");
    CHECK(whole.memory_clock_mhz == 2619);
    CHECK(whole.mig_profile.empty());
    const cache::GpuKey slice = gpu_key(*driver, 1);
    CHECK(slice.name == whole.name);
    CHECK(slice.mig_profile == "1g.10gb");
    CHECK(slice.sm_count == 16);
}

TEST_CASE("the driver's version is NVML's, else the CUDA version it supports") {
    SUBCASE("NVML knows it") {
        const FakeMachine machine("nvml:version=550.54.15");
        CHECK(Driver::load()->version() == "550.54.15");
    }
    SUBCASE("without NVML") {
        const FakeMachine machine("nvml:none;driver:version=12040");
        CHECK(Driver::load()->version() == "12.4");
    }
}

TEST_CASE("errors after which the process must end are sticky, others are not") {
    for (const CUresult result : {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_ASSERT,
                                  CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_ILLEGAL_INSTRUCTION,
                                  CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_ECC_UNCORRECTABLE}) {
        CHECK(is_sticky(result));
        CHECK(CudaError("", result).sticky());
    }
    for (const CUresult result : {CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY,
                                  CUDA_ERROR_NOT_READY, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                                  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_INVALID_CLUSTER_SIZE}) {
        CHECK_FALSE(is_sticky(result));
    }
}

TEST_CASE("a failed call names its object, the error and its number") {
    const FakeMachine machine;
    const auto driver = Driver::load();
    check(*driver, CUDA_SUCCESS, "nothing");
    try {
        check(*driver, CUDA_ERROR_OUT_OF_MEMORY, "allocating 5 bytes");
        FAIL("no error");
    } catch (const CudaError& error) {
        CHECK(contains(error.what(), "allocating 5 bytes: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"));
        CHECK(contains(error.what(), "driver_test.cpp:"));
        CHECK(error.result() == CUDA_ERROR_OUT_OF_MEMORY);
    }
    CHECK(contains(describe(*driver, CUDA_ERROR_PROFILER_DISABLED), "(5)"));  // the fake does not know it
}

TEST_CASE("a primary context is current while it lives, then the former one is again") {
    const FakeMachine machine("device:count=2");
    const auto driver = Driver::load();
    const auto current = [&] {
        CUcontext context = nullptr;
        driver->cuCtxGetCurrent(&context);
        return context;
    };
    {
        const PrimaryContext first(driver, 0);
        CHECK(current() == first.get());
        {
            const PrimaryContext second(driver, 1);
            CHECK(current() == second.get());
            CHECK(second.device() == 1);
        }
        CHECK(current() == first.get());
        PrimaryContext moved = PrimaryContext(driver, 1);
        const PrimaryContext kept = std::move(moved);
        CHECK(machine.live("context") == 2);
    }
    CHECK(current() == nullptr);
    CHECK(machine.live("context") == 0);
    CHECK_THROWS_AS(PrimaryContext(driver, 2), CudaError);
}

TEST_CASE("another thread makes the context current for a scope") {
    const FakeMachine machine;
    const auto driver = Driver::load();
    const PrimaryContext context(driver, 0);
    CUresult before = CUDA_SUCCESS;
    CUresult within = CUDA_ERROR_UNKNOWN;
    std::thread([&] {
        CUdevice device = 0;
        before = driver->cuCtxGetDevice(&device);
        const CurrentContext current(*driver, context.get());
        within = driver->cuCtxGetDevice(&device);
    }).join();
    CHECK(before == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(within == CUDA_SUCCESS);
}

}  // namespace
}  // namespace hone::runtime
