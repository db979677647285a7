// What all prepared operators have in common: the base of RmsNormKernel and its siblings, which add run().
// Small; copies share the loaded kernels and may outlive the Runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "hone/error.h"
#include "hone/report.h"

struct CUstream_st;  // CUstream and cudaStream_t are both CUstream_st*

namespace hone {

namespace runtime {
class PreparedOperator;
}

class PreparedKernel {
  public:
    /// False for one that Runtime::prepare() did not make.
    [[nodiscard]] explicit operator bool() const noexcept { return operator_ != nullptr; }

    /// What prepare() chose. Throws Error when the object is empty.
    [[nodiscard]] const PrepareReport& report() const;

    /// Bytes of device memory, aligned to 256, that any call of up to `rows` rows needs; 0: none. Throws
    /// Error for rows below 0 or above the prepared maximum, and when the object is empty.
    [[nodiscard]] std::int64_t workspace_bytes(std::int64_t rows) const;

  protected:
    PreparedKernel() = default;
    explicit PreparedKernel(std::shared_ptr<const runtime::PreparedOperator> prepared)
        : operator_(std::move(prepared)) {}

    std::shared_ptr<const runtime::PreparedOperator> operator_;
};

}  // namespace hone
