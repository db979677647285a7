// Linear layers and the feed-forward network with weights of 4 or 8 bits. Use is that of linear.h: describe
// the operator, let Runtime::prepare() make a kernel object of it, call run() as often as you like.
// quantize.h makes the weights.
#pragma once

#include <cstdint>
#include <memory>

#include "hone/error.h"
#include "hone/linear.h"
#include "hone/prepared_kernel.h"
#include "hone/quant_format.h"
#include "kernel_templates/dtype.h"

namespace hone {

/// out = activation(x * weight^T + bias) + residual, accumulated in fp32 (w8a8: in 32-bit integers), where an
/// element of weight is (code - zero point) * scale. Rows of x are tokens.
///
/// w4a16 and w8a16 multiply x as it is; weights may be rounded to dtype before that. w8a8 and fp8 multiply
/// codes with codes: either the caller gives those of x (quantized_x), as RmsNorm writes them, or they are
/// made of x first, with a scale for each token (fp8 with a group: for each 128 columns of it), the largest
/// magnitude at 127 or 448. With a norm x * rsqrt(mean(x^2) + epsilon) * norm_weight takes the place of x, as
/// in Linear.
struct QuantizedLinear {
    std::int64_t in = 0;             ///< elements of a row of x, 1 to 262144
    std::int64_t out = 0;            ///< elements of a row of out, 1 to 1048576
    std::int64_t max_tokens = 8192;  ///< most tokens of one call
    Dtype dtype = Dtype::bf16;  ///< of x that is no codes, bias, residual, norm_weight, out: fp16 or bf16
    QuantFormat format = QuantFormat::w4a16;
    /// Columns of the weight that share a scale; 0: all of a row. w4a16: 32, 64 or 128, dividing `in`. fp8:
    /// 128, dividing `in`, for a scale each 128 x 128 of the weight and each 128 columns of x. Others: 0.
    std::int64_t group = 0;
    bool zeros = false;        ///< w4a16: codes have zero points, one a group
    bool one_scale = false;    ///< w8a8, fp8 with group 0: one scale for the whole weight, not one a row
    bool quantized_x = false;  ///< w8a8, fp8: x comes as codes with scales; not with norm
    bool one_x_scale = false;  ///< quantized_x, group 0: one scale for all of x, not one a token
    Activation activation = Activation::none;
    bool bias = false;
    bool residual = false;
    bool norm = false;  ///< x is normalized first
};

/// A stored weight [out, in] in device memory.
struct QuantizedWeightPointers {
    /// Bytes. w4a16, w8a16: [ceil(out / 64)][ceil(in / 64)] blocks of 2048 or 4096, without gaps. w8a8 (two's
    /// complement), fp8: [out, in].
    const void* codes = nullptr;
    /// w4a16: of the operator's dtype, [ceil(out / 64)][groups][64], with groups = ceil(ceil(in / 64) * 64 /
    /// group), or 1, in the order of docs/formats.md. Others fp32: [out], or one, or, in groups, [ceil(out /
    /// 128), in / 128].
    const void* scales = nullptr;
    const void* zeros = nullptr;  ///< one byte each, at the places of scales; needed when codes have them
};

/// Device pointers and row strides of one call. Rows are contiguous; a stride is the distance between two
/// rows in elements, 0 meaning the row's length. 16 bytes always suffice as alignment of pointers and
/// strides; weight_stride is for w8a8 and fp8, packed codes have no rows. What LinearArgs says of overlaps
/// and of weights holds here, too.
struct QuantizedLinearArgs {
    const void* x = nullptr;          ///< [tokens, in], of dtype; quantized_x: int8 or E4M3
    const float* x_scales = nullptr;  ///< quantized_x: [tokens], [tokens, in / 128] in groups, or one
    QuantizedWeightPointers weight;
    const void* bias = nullptr;      ///< [out]; needed when the operator has a bias
    const void* residual = nullptr;  ///< [tokens, out]; needed when the operator has a residual
    void* out = nullptr;             ///< [tokens, out]
    void* workspace = nullptr;  ///< workspace_bytes(tokens), aligned to 256; may be nullptr when that is 0
    std::int64_t x_stride = 0;
    std::int64_t x_scale_stride = 0;  ///< between the scales of two tokens; one_x_scale: has no meaning
    std::int64_t weight_stride = 0;
    std::int64_t residual_stride = 0;
    std::int64_t out_stride = 0;
    const void* norm_weight = nullptr;  ///< [in]; needed when the operator has a norm
    float epsilon = 1e-5F;              ///< of the norm, from 0
};

/// A prepared QuantizedLinear.
class QuantizedLinearKernel : public PreparedKernel {
  public:
    QuantizedLinearKernel() = default;

    /// Enqueues the operator for `tokens` rows (0: does nothing). Checks fail before anything is enqueued.
    [[nodiscard]] Status run(CUstream_st* stream, const QuantizedLinearArgs& args,
                             std::int64_t tokens) const noexcept;

    /// For Runtime::prepare().
    QuantizedLinearKernel(std::shared_ptr<const runtime::PreparedOperator> prepared,
                          const QuantizedLinear& linear)
        : PreparedKernel(std::move(prepared)), linear_(linear) {}

  private:
    QuantizedLinear linear_;
};

/// FusedFfn with quantized weights, all of one format. The product of the first half [tokens, intermediate],
/// rounded to dtype, lies in the workspace; where codes are multiplied with codes, the second half makes its
/// own of that.
struct QuantizedFfn {
    std::int64_t hidden = 0;         ///< elements of a row of x and out
    std::int64_t intermediate = 0;   ///< elements of a row between the halves
    std::int64_t max_tokens = 8192;  ///< most tokens of one call
    Dtype dtype = Dtype::bf16;       ///< as QuantizedLinear's
    QuantFormat format = QuantFormat::w4a16;
    std::int64_t group = 0;    ///< as QuantizedLinear's; divides hidden and intermediate
    bool zeros = false;        ///< of all weights
    bool one_scale = false;    ///< one for each weight
    bool quantized_x = false;  ///< x, and only x, comes as codes with scales; not with norm
    bool one_x_scale = false;
    Activation activation = Activation::silu;
    bool gated = true;
    bool bias = false;      ///< of both halves; not with `gated`
    bool residual = false;  ///< added to out
    bool norm = false;      ///< x is normalized first
};

/// As QuantizedLinearArgs; weights have no gaps. `out` may be the residual itself also where that is x.
struct QuantizedFfnArgs {
    const void* x = nullptr;          ///< [tokens, hidden], of dtype; quantized_x: int8 or E4M3
    const float* x_scales = nullptr;  ///< as QuantizedLinearArgs'
    QuantizedWeightPointers gate;     ///< [intermediate, hidden]; needed when the operator is gated
    QuantizedWeightPointers up;       ///< [intermediate, hidden]
    QuantizedWeightPointers down;     ///< [hidden, intermediate]
    const void* up_bias = nullptr;    ///< [intermediate]; needed when the operator has biases
    const void* down_bias = nullptr;  ///< [hidden]; needed when the operator has biases
    const void* residual = nullptr;   ///< [tokens, hidden]; needed when the operator has a residual
    void* out = nullptr;              ///< [tokens, hidden]
    void* workspace = nullptr;        ///< workspace_bytes(tokens), aligned to 256
    std::int64_t x_stride = 0;
    std::int64_t x_scale_stride = 0;
    std::int64_t residual_stride = 0;
    std::int64_t out_stride = 0;
    const void* norm_weight = nullptr;  ///< [hidden]; needed when the operator has a norm
    float epsilon = 1e-5F;              ///< of the norm, from 0
};

/// A prepared QuantizedFfn.
class QuantizedFfnKernel : public PreparedHalves {
  public:
    QuantizedFfnKernel() = default;

    /// Enqueues the operator for `tokens` rows (0: does nothing). Checks fail before anything is enqueued.
    [[nodiscard]] Status run(CUstream_st* stream, const QuantizedFfnArgs& args,
                             std::int64_t tokens) const noexcept;

    /// For Runtime::prepare().
    QuantizedFfnKernel(std::shared_ptr<const runtime::PreparedOperator> first,
                       std::shared_ptr<const runtime::PreparedOperator> second, const QuantizedFfn& ffn)
        : PreparedHalves(std::move(first), std::move(second), ffn.intermediate * size_bytes(ffn.dtype),
                         ffn.max_tokens),
          ffn_(ffn) {}

  private:
    QuantizedFfn ffn_;
};

}  // namespace hone
