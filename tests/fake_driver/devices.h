// The GPUs of a fake machine: datasheet figures of an H100 SXM, an A10, and a MIG slice of the H100.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/fake_driver/script.h"

namespace hone::fake {

struct FakeDevice {
    std::string name;
    int number = 0;  ///< on the machine, whatever CUDA_VISIBLE_DEVICES hides
    std::string pci_bus_id;
    std::int64_t memory_bytes = 0;
    std::map<CUdevice_attribute, int> attributes;

    [[nodiscard]] int attribute(CUdevice_attribute which) const {
        const auto at = attributes.find(which);
        return at == attributes.end() ? 0 : at->second;
    }
    [[nodiscard]] int compute_capability() const {
        return 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
               attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    }
};

/// Those of the script; where CUDA_VISIBLE_DEVICES is a UUID, that one alone.
[[nodiscard]] std::vector<FakeDevice> devices_of(const Script& script);

/// Each byte is the device's number and one.
[[nodiscard]] CUuuid uuid_of(const FakeDevice& device);
/// "GPU-01010101-..."
[[nodiscard]] std::string uuid_text(const FakeDevice& device);

}  // namespace hone::fake
