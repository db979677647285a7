// RmsNormBackward. Describe the operator, let Runtime::prepare() make a kernel object of it, call run() as
// often as you like: it is safe from many threads at once and under stream capture, takes no lock, allocates
// nothing and makes no system call of its own. The calling thread needs the device's primary context current,
// as after any call of the CUDA runtime; a thread without a context gets it at its first run(). Generated
// from kernel_templates/rmsnorm_backward/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "hone/error.h"
#include "hone/prepared_kernel.h"
#include "kernel_templates/dtype.h"

namespace hone {

/// Gradients of an RMSNorm: with r = rsqrt(mean(x^2) + epsilon) of a row and g = dy * weight,
///   dx = r * (g - x * r^2 * mean(g * x)) (+ dsum),     dweight = sum over rows of dy * x * r,
/// accumulated in fp32 in a fixed order: the same bits at every call. x is what was normalized: for a norm
/// with a residual its `sum`, whose own gradient dsum then joins dx, which is the gradient of both x and
/// residual.
struct RmsNormBackward {
    std::int64_t hidden = 0;       ///< elements of a row, 1 to 262144
    std::int64_t max_rows = 8192;  ///< most rows of one call
    Dtype dtype = Dtype::bf16;     ///< element type of every tensor; fp32, fp16 or bf16
    bool residual = false;         ///< dsum is added
};

/// Rows are contiguous, strides as in NormArgs. dx may be dy or dsum itself; other overlaps are not allowed.
struct RmsNormBackwardArgs {
    const void* dy = nullptr;      ///< [rows, hidden], dtype
    const void* x = nullptr;       ///< [rows, hidden], dtype
    const void* weight = nullptr;  ///< [hidden], dtype
    const void* dsum = nullptr;    ///< [rows, hidden], dtype; needed when the operator has a residual
    void* dx = nullptr;            ///< [rows, hidden], dtype
    void* dweight = nullptr;       ///< [hidden], dtype
    void* workspace = nullptr;     ///< workspace_bytes(), aligned to 256; nullptr when that is 0
    std::int64_t dy_stride = 0;
    std::int64_t x_stride = 0;
    std::int64_t dsum_stride = 0;
    std::int64_t dx_stride = 0;
    float epsilon = 1e-5F;  ///< from 0
};

/// A prepared RmsNormBackward.
class RmsNormBackwardKernel : public PreparedKernel {
  public:
    RmsNormBackwardKernel() = default;

    /// Enqueues the operator for `rows` (0: does nothing). Checks fail before anything is enqueued. With 0
    /// rows dweight is not written.
    [[nodiscard]] Status run(CUstream_st* stream, const RmsNormBackwardArgs& args,
                             std::int64_t rows) const noexcept;
    /// Why run() refuses such a call: the argument's name, its value and what is allowed. Empty: it does not.
    [[nodiscard]] std::string refusal(const RmsNormBackwardArgs& args, std::int64_t rows) const;

    /// For Runtime::prepare().
    RmsNormBackwardKernel(std::shared_ptr<const runtime::Prepared> prepared,
                          const RmsNormBackward& description)
        : PreparedKernel(std::move(prepared)), description_(description) {}

  private:
    RmsNormBackward description_;
};

}  // namespace hone
