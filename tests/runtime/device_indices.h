// An index tensor on the device, for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cuda/memory.h"

namespace hone::test {

template <class Index = std::int32_t>
class DeviceIndices {
  public:
    DeviceIndices(const runtime::Driver& driver, const std::vector<Index>& values)
        : buffer_(driver, values.size()) {
        runtime::upload(driver, buffer_.span(), values);
    }
    [[nodiscard]] const Index* data() const { return buffer_.data(); }

  private:
    runtime::DeviceBuffer<Index> buffer_;
};

}  // namespace hone::test
