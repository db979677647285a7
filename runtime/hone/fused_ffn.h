// FusedFfn. Describe the operator, let Runtime::prepare() make a kernel object of it, call run() as often as
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

/// The feed-forward network of a transformer layer. Gated (SwiGLU and its like):
///   out = (activation(x * gate^T) * (x * up^T)) * down^T + residual,
/// else out = activation(x * up^T + up_bias) * down^T + down_bias + residual. The product of the first half
/// [tokens, intermediate], rounded to dtype, lies in the workspace. With a norm an RmsNorm of x takes the
/// place of x, as in Linear, but not of a residual that is x itself: out = x + ffn(norm(x)) is one call.
struct FusedFfn {
    std::int64_t hidden = 0;         ///< elements of a row of x and out
    std::int64_t intermediate = 0;   ///< elements of a row between the halves
    std::int64_t max_tokens = 8192;  ///< most tokens of one call
    Dtype dtype = Dtype::bf16;       ///< element type of every tensor
    Activation activation = Activation::silu;
    bool gated = true;
    bool bias = false;      ///< biases of both halves; not with `gated`
    bool residual = false;  ///< added to out
    bool norm = false;      ///< x is normalized first
};

/// As LinearArgs; weights are contiguous. `out` may be the residual itself also where that is x.
struct FusedFfnArgs {
    const void* x = nullptr;          ///< [tokens, hidden]
    const void* gate = nullptr;       ///< [intermediate, hidden]; needed when the operator is gated
    const void* up = nullptr;         ///< [intermediate, hidden]
    const void* up_bias = nullptr;    ///< [intermediate]; needed when the operator has biases
    const void* down = nullptr;       ///< [hidden, intermediate]
    const void* down_bias = nullptr;  ///< [hidden]; needed when the operator has biases
    const void* residual = nullptr;   ///< [tokens, hidden]; needed when the operator has a residual
    void* out = nullptr;              ///< [tokens, hidden]
    void* workspace = nullptr;        ///< workspace_bytes(), aligned to 256; nullptr when that is 0
    std::int64_t x_stride = 0;
    std::int64_t residual_stride = 0;
    std::int64_t out_stride = 0;
    const void* norm_weight = nullptr;  ///< [hidden]; needed when the operator has a norm
    float epsilon = 1e-5F;              ///< the norm's, from 0
};

/// A prepared FusedFfn.
class FusedFfnKernel : public PreparedKernel {
  public:
    FusedFfnKernel() = default;

    /// Enqueues the operator for `tokens` (0: does nothing). Checks fail before anything is enqueued.
    [[nodiscard]] Status run(CUstream_st* stream, const FusedFfnArgs& args,
                             std::int64_t tokens) const noexcept;
    /// Why run() refuses such a call: the argument's name, its value and what is allowed. Empty: it does not.
    [[nodiscard]] std::string refusal(const FusedFfnArgs& args, std::int64_t tokens) const;

    /// For Runtime::prepare().
    explicit FusedFfnKernel(std::shared_ptr<const runtime::Prepared> prepared)
        : PreparedKernel(std::move(prepared)) {}
};

}  // namespace hone
