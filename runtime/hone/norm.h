// RMSNorm, LayerNorm, and RMSNorm's gradients over the rows of a matrix. Describe the operator (RmsNorm), let
// Runtime::prepare() make a kernel object of it, call run() as often as you like.
//
// run() is safe from many threads at once and under stream capture; it takes no lock, allocates nothing and
// makes no system call of its own. The calling thread needs the device's primary context current, as in any
// program that uses the CUDA runtime; a thread without a context gets it at its first run().
#pragma once

#include <cstdint>
#include <memory>

#include "hone/error.h"
#include "hone/prepared_kernel.h"
#include "kernel_templates/dtype.h"
#include "kernel_templates/enums.h"

namespace hone {

/// y = x * rsqrt(mean(x^2) + epsilon) * weight over each row of `hidden` elements; accumulated in fp32. With
/// a residual, x + residual (rounded to dtype) takes the place of x and is written to `sum`.
struct RmsNorm {
    std::int64_t hidden = 0;       ///< elements of a row, 1 to 262144
    std::int64_t max_rows = 8192;  ///< most rows of one call
    Dtype dtype = Dtype::bf16;     ///< of x, residual, weight, sum; fp32, fp16 or bf16
    NormOutput output = NormOutput::same;
    bool residual = false;
};

/// Device pointers and row strides of one call. Rows are contiguous; a stride is the distance between two
/// rows in elements, 0 meaning `hidden`. Pointers and strides have to be multiples of the chosen kernel's
/// vector width: 16 bytes always do. `out` may be x itself when it has the same dtype, `sum` may be x or
/// residual itself; other overlaps are not allowed.
struct RmsNormArgs {
    const void* x = nullptr;         ///< [rows, hidden], dtype
    const void* residual = nullptr;  ///< [rows, hidden], dtype; needed when the operator has a residual
    const void* weight = nullptr;    ///< [hidden], dtype
    void* out = nullptr;             ///< [rows, hidden], dtype or codes (one byte an element)
    void* sum = nullptr;             ///< [rows, hidden], dtype; needed when the operator has a residual
    float* scale = nullptr;          ///< [rows]; needed when the output is quantized
    std::int64_t x_stride = 0;
    std::int64_t residual_stride = 0;
    std::int64_t out_stride = 0;
    std::int64_t sum_stride = 0;
    float epsilon = 1e-5F;
};

/// y = (x - mean(x)) * rsqrt(var(x) + epsilon) * weight + bias over each row; otherwise like RmsNorm.
struct LayerNorm {
    std::int64_t hidden = 0;
    std::int64_t max_rows = 8192;
    Dtype dtype = Dtype::bf16;
    NormOutput output = NormOutput::same;
    bool residual = false;
    bool bias = true;
};

struct LayerNormArgs {
    const void* x = nullptr;
    const void* residual = nullptr;
    const void* weight = nullptr;
    const void* bias = nullptr;  ///< [hidden], dtype; needed when the operator has a bias
    void* out = nullptr;
    void* sum = nullptr;
    float* scale = nullptr;
    std::int64_t x_stride = 0;
    std::int64_t residual_stride = 0;
    std::int64_t out_stride = 0;
    std::int64_t sum_stride = 0;
    float epsilon = 1e-5F;
};

/// Gradients of an RMSNorm: with r = rsqrt(mean(x^2) + epsilon) of a row and g = dy * weight,
///   dx = r * (g - x * r^2 * mean(g * x)) (+ dsum),     dweight = sum over rows of dy * x * r,
/// accumulated in fp32 in a fixed order: the same bits at every call. x is what was normalized: for a norm
/// with a residual its `sum`, whose own gradient dsum then joins dx, which is the gradient of both x and
/// residual.
struct RmsNormBackward {
    std::int64_t hidden = 0;       ///< elements of a row, 1 to 262144
    std::int64_t max_rows = 8192;  ///< most rows of one call
    Dtype dtype = Dtype::bf16;     ///< of every tensor; fp32, fp16 or bf16
    bool residual = false;         ///< dsum is added
};

/// As RmsNormArgs. dx may be dy or dsum itself; other overlaps are not allowed.
struct RmsNormBackwardArgs {
    const void* dy = nullptr;      ///< [rows, hidden], dtype
    const void* x = nullptr;       ///< [rows, hidden], dtype
    const void* weight = nullptr;  ///< [hidden], dtype
    const void* dsum = nullptr;    ///< [rows, hidden], dtype; needed when the operator has a residual
    void* dx = nullptr;            ///< [rows, hidden], dtype
    void* dweight = nullptr;       ///< [hidden], dtype
    void* workspace = nullptr;     ///< workspace_bytes(), aligned to 256; no other call may use it meanwhile
    std::int64_t dy_stride = 0;
    std::int64_t x_stride = 0;
    std::int64_t dsum_stride = 0;
    std::int64_t dx_stride = 0;
    float epsilon = 1e-5F;
};

/// A prepared RmsNorm.
class RmsNormKernel : public PreparedKernel {
  public:
    RmsNormKernel() = default;

    /// Enqueues the operator for `rows` rows (0: does nothing). Checks fail before anything is
    /// enqueued.
    [[nodiscard]] Status run(CUstream_st* stream, const RmsNormArgs& args, std::int64_t rows) const noexcept;

    /// For Runtime::prepare().
    RmsNormKernel(std::shared_ptr<const runtime::PreparedOperator> prepared, std::int64_t hidden)
        : PreparedKernel(std::move(prepared)), hidden_(hidden) {}

  private:
    std::int64_t hidden_ = 0;
};

/// A prepared LayerNorm; see RmsNormKernel.
class LayerNormKernel : public PreparedKernel {
  public:
    LayerNormKernel() = default;

    [[nodiscard]] Status run(CUstream_st* stream, const LayerNormArgs& args,
                             std::int64_t rows) const noexcept;

    /// For Runtime::prepare().
    LayerNormKernel(std::shared_ptr<const runtime::PreparedOperator> prepared, std::int64_t hidden)
        : PreparedKernel(std::move(prepared)), hidden_(hidden) {}

  private:
    std::int64_t hidden_ = 0;
};

/// A prepared RmsNormBackward; see RmsNormKernel.
class RmsNormBackwardKernel : public PreparedKernel {
  public:
    RmsNormBackwardKernel() = default;

    /// With 0 rows dweight is not written.
    [[nodiscard]] Status run(CUstream_st* stream, const RmsNormBackwardArgs& args,
                             std::int64_t rows) const noexcept;

    /// For Runtime::prepare().
    RmsNormBackwardKernel(std::shared_ptr<const runtime::PreparedOperator> prepared, std::int64_t hidden)
        : PreparedKernel(std::move(prepared)), hidden_(hidden) {}

  private:
    std::int64_t hidden_ = 0;
};

}  // namespace hone
