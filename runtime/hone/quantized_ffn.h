// QuantizedFfn. Describe the operator, let Runtime::prepare() make a kernel object of it, call run() as often
// as you like: it is safe from many threads at once and under stream capture, takes no lock, allocates
// nothing and makes no system call of its own. The calling thread needs the device's primary context current,
// as after any call of the CUDA runtime; a thread without a context gets it at its first run(). Generated
// from kernel_templates/quantized_linear/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "hone/error.h"
#include "hone/prepared_kernel.h"
#include "hone/quantized_weight_pointers.h"
#include "kernel_templates/dtype.h"
#include "kernel_templates/enums.h"

namespace hone {

/// FusedFfn with quantized weights, all of one format. The product of the first half [tokens, intermediate],
/// rounded to dtype, lies in the workspace; where codes are multiplied with codes, the second half makes its
/// own of that.
struct QuantizedFfn {
    std::int64_t hidden = 0;         ///< elements of a row of x and out
    std::int64_t intermediate = 0;   ///< elements of a row between the halves
    std::int64_t max_tokens = 8192;  ///< most tokens of one call
    Dtype dtype = Dtype::bf16;       ///< as in QuantizedLinear
    QuantFormat format = QuantFormat::w4a16;
    std::int64_t group = 0;    ///< as in QuantizedLinear; divides hidden and intermediate
    bool zeros = false;        ///< zero points of all weights
    bool one_scale = false;    ///< one for each weight
    bool quantized_x = false;  ///< x, and only x, comes as codes with scales; not with norm
    bool one_x_scale = false;
    Activation activation = Activation::silu;
    bool gated = true;
    bool bias = false;      ///< biases of both halves; not with `gated`
    bool residual = false;  ///< added to out
    bool norm = false;      ///< x is normalized first
};

/// As QuantizedLinearArgs; weights have no gaps. `out` may be the residual itself also where that is x.
struct QuantizedFfnArgs {
    const void* x = nullptr;          ///< [tokens, hidden], dtype; quantized_x: int8 or E4M3
    const float* x_scales = nullptr;  ///< as in QuantizedLinearArgs
    QuantizedWeightPointers gate;     ///< [intermediate, hidden]; needed when the operator is gated
    QuantizedWeightPointers up;       ///< [intermediate, hidden]
    QuantizedWeightPointers down;     ///< [hidden, intermediate]
    const void* up_bias = nullptr;    ///< [intermediate]; needed when the operator has biases
    const void* down_bias = nullptr;  ///< [hidden]; needed when the operator has biases
    const void* residual = nullptr;   ///< [tokens, hidden]; needed when the operator has a residual
    void* out = nullptr;              ///< [tokens, hidden]
    void* workspace = nullptr;        ///< workspace_bytes(), aligned to 256; nullptr when that is 0
    std::int64_t x_stride = 0;
    std::int64_t x_scale_stride = 0;
    std::int64_t residual_stride = 0;
    std::int64_t out_stride = 0;
    const void* norm_weight = nullptr;  ///< [hidden]; needed when the operator has a norm
    float epsilon = 1e-5F;              ///< the norm's, from 0
};

/// A prepared QuantizedFfn.
class QuantizedFfnKernel : public PreparedKernel {
  public:
    QuantizedFfnKernel() = default;

    /// Enqueues the operator for `tokens` (0: does nothing). Checks fail before anything is enqueued.
    [[nodiscard]] Status run(CUstream_st* stream, const QuantizedFfnArgs& args,
                             std::int64_t tokens) const noexcept;
    /// Why run() refuses such a call: the argument's name, its value and what is allowed. Empty: it does not.
    [[nodiscard]] std::string refusal(const QuantizedFfnArgs& args, std::int64_t tokens) const;

    /// For Runtime::prepare().
    explicit QuantizedFfnKernel(std::shared_ptr<const runtime::Prepared> prepared)
        : PreparedKernel(std::move(prepared)) {}
};

}  // namespace hone
