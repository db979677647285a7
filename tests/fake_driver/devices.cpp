#include "tests/fake_driver/devices.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

namespace hone::fake {
namespace {

FakeDevice h100() {
    return {.name = "NVIDIA H100 80GB HBM3",
            .pci_bus_id = {},
            .memory_bytes = 85'029'158'912,
            .attributes = {
                {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
                {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
                {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
                {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
                {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
                {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
                {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
                {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
                {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 52428800},
                {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
                {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
                {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
                {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
            }};
}

FakeDevice a10() {
    return {.name = "NVIDIA A10",
            .pci_bus_id = {},
            .memory_bytes = 23'609'475'072,
            .attributes = {
                {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8},
                {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 6},
                {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 72},
                {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1536},
                {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 16},
                {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
                {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 102400},
                {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 101376},
                {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 6291456},
                {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 6251000},
                {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 384},
                {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1695000},
                {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0},
            }};
}

FakeDevice mig_slice() {
    FakeDevice device = h100();
    device.name += " MIG 1g.10gb";
    device.memory_bytes = 10'468'982'784;
    device.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = 16;
    device.attributes[CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE] = 6291456;
    return device;
}

FakeDevice device_of_kind(const std::string& kind) {
    FakeDevice device = kind == "a10" ? a10() : kind == "mig" ? mig_slice() : h100();
    device.attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
    device.attributes[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK] = 49152;
    device.attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 32;
    return device;
}

}  // namespace

std::vector<FakeDevice> devices_of(const Script& script) {
    const Rule* kinds = script.setting("device", "kind");
    const Rule* count = script.setting("device", "count");
    const Rule* memory = script.setting("device", "memory");

    std::vector<FakeDevice> devices;
    std::istringstream words(kinds == nullptr ? "h100" : kinds->text("kind"));
    for (std::string kind; std::getline(words, kind, '+');) devices.push_back(device_of_kind(kind));
    if (count != nullptr) devices.resize(static_cast<std::size_t>(count->number("count")), devices.front());

    for (std::size_t i = 0; i < devices.size(); ++i) {
        std::array<char, 32> id{};
        std::snprintf(id.data(), id.size(), "0000:%02X:00.0", static_cast<unsigned>(0x1b + 0x10 * i) & 0xffu);
        devices[i].number = static_cast<int>(i);
        devices[i].pci_bus_id = id.data();
        if (memory != nullptr) devices[i].memory_bytes = memory->number("memory");
    }
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    if (visible != nullptr && *visible == '\0') devices.clear();
    if (visible != nullptr && std::string_view(visible).starts_with("GPU-"))
        std::erase_if(devices, [&](const FakeDevice& device) { return uuid_text(device) != visible; });
    return devices;
}

CUuuid uuid_of(const FakeDevice& device) {
    CUuuid uuid{};
    std::memset(uuid.bytes, device.number + 1, sizeof(uuid.bytes));
    return uuid;
}

std::string uuid_text(const FakeDevice& device) {
    const CUuuid uuid = uuid_of(device);
    std::string text = "GPU";
    for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
        std::array<char, 4> byte{};
        const bool starts_group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        std::snprintf(byte.data(), byte.size(), "%s%02x", starts_group ? "-" : "",
                      static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
        text += byte.data();
    }
    return text;
}

}  // namespace hone::fake
