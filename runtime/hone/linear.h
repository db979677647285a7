// Linear. Describe the operator, let Runtime::prepare() make a kernel object of it, call run() as often as
// you like: it is safe from many threads at once and under stream capture, takes no lock, allocates nothing
// and makes no system call of its own. The calling thread needs the device's primary context current, as
// after any call of the CUDA runtime; a thread without a context gets it at its first run(). Generated from
// kernel_templates/linear/operators.py by `./hone generate`.
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

/// out = activation(x * weight^T + bias) + residual, accumulated in fp32. Rows of x are tokens. With a norm x
/// * rsqrt(mean(x^2) + epsilon) * norm_weight, an RmsNorm, takes the place of x; it may be rounded to dtype
/// before it is multiplied, as that of an RmsNorm is.
struct Linear {
    std::int64_t in = 0;             ///< elements of a row of x, 1 to 262144
    std::int64_t out = 0;            ///< elements of a row of out, 1 to 1048576
    std::int64_t max_tokens = 8192;  ///< most tokens of one call
    Dtype dtype = Dtype::bf16;       ///< element type of every tensor; fp32, fp16 or bf16
    Activation activation = Activation::none;
    bool bias = false;
    bool residual = false;
    bool norm = false;  ///< x is normalized first
};

/// Rows are contiguous; a stride is the distance between two rows in elements, 0 meaning the row's length. 16
/// bytes always suffice as alignment of pointers and strides. `out` may be the residual itself; other
/// overlaps are not allowed. Weights are constants: a kernel may read them before the one enqueued right
/// before it has ended, if that lets its successor begin early, as Hone's kernels do. Such a kernel must not
/// write them.
struct LinearArgs {
    const void* x = nullptr;         ///< [tokens, in], dtype
    const void* weight = nullptr;    ///< [out, in], dtype
    const void* bias = nullptr;      ///< [out], dtype; needed when the operator has a bias
    const void* residual = nullptr;  ///< [tokens, out], dtype; needed when the operator has a residual
    void* out = nullptr;             ///< [tokens, out], dtype
    void* workspace = nullptr;       ///< workspace_bytes(), aligned to 256; nullptr when that is 0
    std::int64_t x_stride = 0;
    std::int64_t weight_stride = 0;
    std::int64_t residual_stride = 0;
    std::int64_t out_stride = 0;
    const void* norm_weight = nullptr;  ///< [in], dtype; needed when the operator has a norm
    float epsilon = 1e-5F;              ///< the norm's, from 0
};

/// A prepared Linear.
class LinearKernel : public PreparedKernel {
  public:
    LinearKernel() = default;

    /// Enqueues the operator for `tokens` (0: does nothing). Checks fail before anything is enqueued.
    [[nodiscard]] Status run(CUstream_st* stream, const LinearArgs& args, std::int64_t tokens) const noexcept;
    /// Why run() refuses such a call: the argument's name, its value and what is allowed. Empty: it does not.
    [[nodiscard]] std::string refusal(const LinearArgs& args, std::int64_t tokens) const;

    /// For Runtime::prepare().
    LinearKernel(std::shared_ptr<const runtime::Prepared> prepared, const Linear& description)
        : PreparedKernel(std::move(prepared)), description_(description) {}

  private:
    Linear description_;
};

}  // namespace hone
