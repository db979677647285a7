// An index tensor on the device, for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cuda/memory.h"

namespace hone::test {

class DeviceIndices {
  public:
    DeviceIndices(const runtime::Driver& driver, const std::vector<std::int32_t>& values)
        : buffer_(driver, values.size()) {
        runtime::upload(driver, buffer_.span(), values);
    }
    [[nodiscard]] const std::int32_t* data() const { return buffer_.data(); }

  private:
    runtime::DeviceBuffer<std::int32_t> buffer_;
};

}  // namespace hone::test
