// What all prepared operators have in common: the base of LinearKernel and its siblings, which add run().
// Small; copies share the loaded kernels and may outlive the Runtime.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "hone/error.h"
#include "hone/report.h"

struct CUstream_st;  // CUstream and cudaStream_t are both CUstream_st*

namespace hone {

namespace runtime {
class Prepared;
}

class PreparedKernel {
  public:
    /// False for one that Runtime::prepare() did not make.
    [[nodiscard]] explicit operator bool() const noexcept { return prepared_ != nullptr; }

    /// What prepare() chose, part by part: most operators have one, a feed-forward network its halves,
    /// attention one for each of its kernels' sizes. Throws Error when the object is empty.
    [[nodiscard]] std::vector<PrepareReport> reports() const;

    /// Bytes of device memory, aligned to 256, that any call of up to `rows` rows needs; 0: none. Throws
    /// Error for rows below 0 or above the prepared maximum, and when the object is empty.
    [[nodiscard]] std::int64_t workspace_bytes(std::int64_t rows) const;

  protected:
    PreparedKernel() = default;
    explicit PreparedKernel(std::shared_ptr<const runtime::Prepared> prepared)
        : prepared_(std::move(prepared)) {}

    std::shared_ptr<const runtime::Prepared> prepared_;
};

}  // namespace hone
