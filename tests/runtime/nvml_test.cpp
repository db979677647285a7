#include "runtime/nvml/nvml.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/support/fake_machine.h"

namespace hone::runtime {
namespace {

using test::FakeMachine;
using test::ScopedVariable;

constexpr const char* first_gpu = "0000:1B:00.0";

TEST_CASE("an idle GPU answers every question") {
    const FakeMachine machine;
    const auto device = NvmlDevice::open(first_gpu);
    REQUIRE(device != nullptr);
    const auto clocks = device->clocks();
    REQUIRE(clocks.has_value());
    CHECK(clocks->sm_mhz == 1980);
    CHECK(clocks->memory_mhz == 2619);
    CHECK_FALSE(clocks->throttled());
    CHECK(device->max_sm_mhz() == 1980);
    CHECK(device->max_memory_mhz() == 2619);
    CHECK(device->power_w() == doctest::Approx(350.0));
    CHECK(device->temperature_c() == 45);
    CHECK(device->foreign_processes({}).empty());
    CHECK(nvml_driver_version() == "580.00.00");
}

TEST_CASE("NVML lists the GPUs, all or none, and says which are parted") {
    {
        const FakeMachine machine("device:kind=h100+a10+mig");
        const std::vector<ListedGpu> gpus = listed_gpus();
        REQUIRE(gpus.size() == 3);
        CHECK(gpus[0].uuid == "GPU-01010101-0101-0101-0101-010101010101");
        CHECK(gpus[1].uuid != gpus[0].uuid);
        CHECK(gpus[0].name == "NVIDIA H100 80GB HBM3");
        CHECK(gpus[1].name != gpus[0].name);
        CHECK_FALSE(gpus[0].is_parted);
        CHECK(gpus[2].is_parted);
    }
    CHECK((FakeMachine("device:count=2; nvml:refuse=nvmlDeviceGetUUID"), listed_gpus().empty()));
    CHECK((FakeMachine("nvml:none"), listed_gpus().empty()));
}

TEST_CASE("energy rises") {
    const FakeMachine machine;
    const auto device = NvmlDevice::open(first_gpu);
    REQUIRE(device != nullptr);
    const auto before = device->energy_mj();
    REQUIRE(before.has_value());
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (device->energy_mj() == before && std::chrono::steady_clock::now() < limit) {
    }
    CHECK(*device->energy_mj() > *before);
}

TEST_CASE("heat and power brakes are throttling, the power cap is not") {
    CHECK(ClockState{.event_reasons = 0x08}.throttled());
    CHECK(ClockState{.event_reasons = 0x20}.throttled());
    CHECK(ClockState{.event_reasons = 0x40}.throttled());
    CHECK(ClockState{.event_reasons = 0x80}.throttled());
    CHECK_FALSE(ClockState{.event_reasons = 0x01}.throttled());
    CHECK_FALSE(ClockState{.event_reasons = 0x04}.throttled());
    const FakeMachine machine("nvml:throttle=0x40");
    CHECK(NvmlDevice::open(first_gpu)->clocks()->throttled());
}

TEST_CASE("other processes on the GPU are seen, own ones left out, however many there are") {
    std::string script = "nvml:tenant=4242";
    for (int pid = 5000; pid < 5040; ++pid) script += ";nvml:tenant=" + std::to_string(pid);
    const FakeMachine machine(script);
    const auto device = NvmlDevice::open(first_gpu);
    CHECK(device->foreign_processes({}).size() == 41);
    CHECK(device->foreign_processes({4242, 5000}).size() == 39);
}

TEST_CASE("a query that NVML refuses is an absent answer") {
    const FakeMachine machine(
        "nvml:refuse=nvmlDeviceGetTotalEnergyConsumption;nvml:refuse=nvmlDeviceGetClockInfo;"
        "nvml:refuse=nvmlDeviceGetComputeRunningProcesses_v3;nvml:tenant=4242");
    const auto device = NvmlDevice::open(first_gpu);
    REQUIRE(device != nullptr);
    CHECK_FALSE(device->energy_mj().has_value());
    CHECK_FALSE(device->clocks().has_value());
    CHECK(device->foreign_processes({}).empty());
    CHECK(device->temperature_c().has_value());
}

TEST_CASE("without NVML, or for a GPU that it does not know, there is no device") {
    {
        const FakeMachine machine("nvml:none");
        CHECK(NvmlDevice::open(first_gpu) == nullptr);
        CHECK(nvml_driver_version().empty());
    }
    {
        const FakeMachine machine;
        CHECK(NvmlDevice::open("0000:FF:00.0") == nullptr);
    }
    const ScopedVariable variable("HONE_NVML_LIBRARY", "/nowhere/libnvidia-ml.so.1");
    CHECK(NvmlDevice::open(first_gpu) == nullptr);
}

}  // namespace
}  // namespace hone::runtime
