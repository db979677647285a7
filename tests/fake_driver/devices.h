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

[[nodiscard]] std::vector<FakeDevice> devices_of(const Script& script);

}  // namespace hone::fake
