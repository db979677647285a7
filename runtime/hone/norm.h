// RmsNorm and LayerNorm. Describe the operator, let Runtime::prepare() make a kernel object of it, call run()
// as often as you like: it is safe from many threads at once and under stream capture, takes no lock,
// allocates nothing and makes no system call of its own. The calling thread needs the device's primary
// context current, as after any call of the CUDA runtime; a thread without a context gets it at its first
// run(). Generated from kernel_templates/norm/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "hone/error.h"
#include "hone/prepared_kernel.h"
#include "kernel_templates/dtype.h"
#include "kernel_templates/enums.h"

namespace hone {

/// y = x * rsqrt(mean(x^2) + epsilon) * weight over each row of `hidden` elements, accumulated in fp32. With
/// a residual, x + residual (rounded to dtype) takes the place of x and is written to `sum`. With
/// unit_offset, as in Gemma's models, the weight counts as 1 + weight, which is not rounded.
struct RmsNorm {
    std::int64_t hidden = 0;       ///< elements of a row, 1 to 262144
    std::int64_t max_rows = 8192;  ///< most rows of one call
    Dtype dtype = Dtype::bf16;     ///< element type of x, residual, weight and sum; fp32, fp16 or bf16
    NormOutput output = NormOutput::same;
    bool residual = false;
    bool unit_offset = false;
};

/// y = (x - mean(x)) * rsqrt(var(x) + epsilon) * weight + bias over each row; otherwise like RmsNorm.
struct LayerNorm {
    std::int64_t hidden = 0;       ///< elements of a row, 1 to 262144
    std::int64_t max_rows = 8192;  ///< most rows of one call
    Dtype dtype = Dtype::bf16;     ///< element type of x, residual, weight, bias and sum; fp32, fp16 or bf16
    NormOutput output = NormOutput::same;
    bool residual = false;
    bool bias = true;
    bool unit_offset = false;
};

/// One call of either norm. Rows are contiguous; a stride is the distance between two rows in elements, 0
/// meaning `hidden`. 16 bytes always suffice as alignment of pointers and strides. `out` may be x itself when
/// it has the same dtype, `sum` may be x or residual itself; other overlaps are not allowed.
struct NormArgs {
    const void* x = nullptr;         ///< [rows, hidden], dtype
    const void* residual = nullptr;  ///< [rows, hidden], dtype; needed when the operator has a residual
    const void* weight = nullptr;    ///< [hidden], dtype
    const void* bias = nullptr;      ///< [hidden], dtype; needed when a layer norm has a bias
    void* out = nullptr;             ///< [rows, hidden], dtype or codes of one byte
    void* sum = nullptr;             ///< [rows, hidden], dtype; needed when the operator has a residual
    float* scale = nullptr;          ///< [rows]; needed when the output is quantized
    std::int64_t x_stride = 0;
    std::int64_t residual_stride = 0;
    std::int64_t out_stride = 0;
    std::int64_t sum_stride = 0;
    float epsilon = 1e-5F;  ///< from 0
};
using RmsNormArgs = NormArgs;
using LayerNormArgs = NormArgs;

/// A prepared RmsNorm or LayerNorm.
class NormKernel : public PreparedKernel {
  public:
    NormKernel() = default;

    /// Enqueues the operator for `rows` (0: does nothing). Checks fail before anything is enqueued.
    [[nodiscard]] Status run(CUstream_st* stream, const NormArgs& args, std::int64_t rows) const noexcept;
    /// Why run() refuses such a call: the argument's name, its value and what is allowed. Empty: it does not.
    [[nodiscard]] std::string refusal(const NormArgs& args, std::int64_t rows) const;

    /// For Runtime::prepare().
    NormKernel(std::shared_ptr<const runtime::Prepared> prepared, std::int64_t hidden)
        : PreparedKernel(std::move(prepared)), hidden_(hidden) {}

  private:
    std::int64_t hidden_ = 0;
};
using RmsNormKernel = NormKernel;
using LayerNormKernel = NormKernel;

}  // namespace hone
