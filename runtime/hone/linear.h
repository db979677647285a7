// Dense linear layers and the feed-forward network of a transformer. Describe the operator, let
// Runtime::prepare() make a kernel object of it, call run() as often as you like; what norm.h says of
// threads, capture and contexts holds here, too.
#pragma once

#include <cstdint>
#include <memory>

#include "hone/error.h"
#include "hone/prepared_kernel.h"
#include "kernel_templates/dtype.h"
#include "kernel_templates/enums.h"

namespace hone {

/// out = activation(x * weight^T + bias) + residual, accumulated in fp32. Rows of x are tokens. With a norm
/// x * rsqrt(mean(x^2) + epsilon) * norm_weight, an RmsNorm, takes the place of x; it may be rounded to dtype
/// before it is multiplied, as that of an RmsNorm is.
struct Linear {
    std::int64_t in = 0;             ///< elements of a row of x, 1 to 262144
    std::int64_t out = 0;            ///< elements of a row of out, 1 to 1048576
    std::int64_t max_tokens = 8192;  ///< most tokens of one call
    Dtype dtype = Dtype::bf16;       ///< of every tensor; fp32, fp16 or bf16
    Activation activation = Activation::none;
    bool bias = false;
    bool residual = false;
    bool norm = false;  ///< x is normalized first
};

/// Device pointers and row strides of one call. Rows are contiguous; a stride is the distance between two
/// rows in elements, 0 meaning the row's length. 16 bytes always suffice as alignment of pointers and
/// strides. `out` may be the residual itself; other overlaps are not allowed. Weights are constants: a kernel
/// may read them before the one enqueued right before it has ended, if that lets its successor begin early,
/// as Hone's kernels do. Such a kernel must not write them.
struct LinearArgs {
    const void* x = nullptr;         ///< [tokens, in]
    const void* weight = nullptr;    ///< [out, in]
    const void* bias = nullptr;      ///< [out]; needed when the operator has a bias
    const void* residual = nullptr;  ///< [tokens, out]; needed when the operator has a residual
    void* out = nullptr;             ///< [tokens, out]
    void* workspace = nullptr;  ///< workspace_bytes(tokens), aligned to 256; may be nullptr when that is 0
    std::int64_t x_stride = 0;
    std::int64_t weight_stride = 0;
    std::int64_t residual_stride = 0;
    std::int64_t out_stride = 0;
    const void* norm_weight = nullptr;  ///< [in]; needed when the operator has a norm
    float epsilon = 1e-5F;              ///< of the norm, from 0
};

/// A prepared Linear.
class LinearKernel : public PreparedKernel {
  public:
    LinearKernel() = default;

    /// Enqueues the operator for `tokens` rows (0: does nothing). Checks fail before anything is enqueued.
    [[nodiscard]] Status run(CUstream_st* stream, const LinearArgs& args, std::int64_t tokens) const noexcept;

    /// For Runtime::prepare().
    LinearKernel(std::shared_ptr<const runtime::PreparedOperator> prepared, const Linear& linear)
        : PreparedKernel(std::move(prepared)), in_(linear.in), out_(linear.out) {}

  private:
    std::int64_t in_ = 0;
    std::int64_t out_ = 0;
};

/// The feed-forward network of a transformer layer. Gated (SwiGLU and its like):
///   out = (activation(x * gate^T) * (x * up^T)) * down^T + residual,
/// else out = activation(x * up^T + up_bias) * down^T + down_bias + residual. The product of the first half
/// [tokens, intermediate], rounded to dtype, lies in the workspace. With a norm an RmsNorm of x takes the
/// place of x, as in Linear, but not of a residual that is x itself: out = x + ffn(norm(x)) is one call.
struct FusedFfn {
    std::int64_t hidden = 0;         ///< elements of a row of x and out
    std::int64_t intermediate = 0;   ///< elements of a row between the halves
    std::int64_t max_tokens = 8192;  ///< most tokens of one call
    Dtype dtype = Dtype::bf16;       ///< of every tensor
    Activation activation = Activation::silu;
    bool gated = true;
    bool bias = false;      ///< of both halves; not with `gated`
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
    void* workspace = nullptr;        ///< workspace_bytes(tokens), aligned to 256
    std::int64_t x_stride = 0;
    std::int64_t residual_stride = 0;
    std::int64_t out_stride = 0;
    const void* norm_weight = nullptr;  ///< [hidden]; needed when the operator has a norm
    float epsilon = 1e-5F;              ///< of the norm, from 0
};

/// A prepared FusedFfn. Small; copies share the loaded kernels and may outlive the Runtime.
class FusedFfnKernel : public PreparedHalves {
  public:
    FusedFfnKernel() = default;

    /// Enqueues the operator for `tokens` rows (0: does nothing). Checks fail before anything is enqueued.
    [[nodiscard]] Status run(CUstream_st* stream, const FusedFfnArgs& args,
                             std::int64_t tokens) const noexcept;

    /// For Runtime::prepare().
    FusedFfnKernel(std::shared_ptr<const runtime::PreparedOperator> first,
                   std::shared_ptr<const runtime::PreparedOperator> second, const FusedFfn& ffn)
        : PreparedHalves(std::move(first), std::move(second), ffn.intermediate * size_bytes(ffn.dtype),
                         ffn.max_tokens),
          ffn_(ffn) {}

  private:
    FusedFfn ffn_;
};

}  // namespace hone
