// QuantizedLinear. Describe the operator, let Runtime::prepare() make a kernel object of it, call run() as
// often as you like: it is safe from many threads at once and under stream capture, takes no lock, allocates
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

/// out = activation(x * weight^T + bias) + residual, accumulated in fp32 (w8a8: in 32-bit integers), where an
/// element of weight is (code - zero point) * scale. Rows of x are tokens.
///
/// w4a16 and w8a16 multiply x as it is; weights may be rounded to dtype before that. w8a8 and fp8 multiply
/// codes with codes: either the caller gives those of x (quantized_x), as an RmsNorm writes them, or they are
/// made of x first, with a scale for each token (fp8 with a group: for each 128 columns of it), the largest
/// magnitude at 127 or 448. With a norm x * rsqrt(mean(x^2) + epsilon) * norm_weight takes the place of x, as
/// in Linear.
struct QuantizedLinear {
    std::int64_t in = 0;             ///< elements of a row of x, 1 to 262144
    std::int64_t out = 0;            ///< elements of a row of out, 1 to 1048576
    std::int64_t max_tokens = 8192;  ///< most tokens of one call
    /// element type of x that is no codes, bias, residual, norm_weight and out; fp16 or bf16
    Dtype dtype = Dtype::bf16;
    QuantFormat format = QuantFormat::w4a16;
    /// columns of the weight that share a scale; 0: all of a row. w4a16: 32, 64 or 128, dividing `in`. fp8:
    /// 128, dividing `in`, for a scale each 128 x 128 of the weight and each 128 columns of x. Others: 0, 0
    /// to 128
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

/// Rows are contiguous; a stride is the distance between two rows in elements, 0 meaning the row's length. 16
/// bytes always suffice as alignment of pointers and strides. What LinearArgs says of overlaps and of weights
/// holds here, too. The weight's codes are bytes: w4a16, w8a16: [ceil(out / 64)][ceil(in / 64)] blocks of
/// 2048 or 4096 without gaps; w8a8 (two's complement), fp8: [out, in], whose rows may lie weight_stride
/// apart. Its scales are, of w4a16, of dtype, [ceil(out / 64)][groups][64] with groups = ceil(ceil(in / 64) *
/// 64 / group), or 1, in the order of docs/formats.md, and its zeros one byte each at the same places; of the
/// others fp32, [out], or one, or, in groups, [ceil(out / 128), in / 128].
struct QuantizedLinearArgs {
    const void* x = nullptr;          ///< [tokens, in], dtype; quantized_x: int8 or E4M3
    const float* x_scales = nullptr;  ///< quantized_x: [tokens], [tokens, in / 128] in groups, or one
    QuantizedWeightPointers weight;   ///< [out, in]
    const void* bias = nullptr;       ///< [out], dtype; needed when the operator has a bias
    const void* residual = nullptr;   ///< [tokens, out], dtype; needed when the operator has a residual
    void* out = nullptr;              ///< [tokens, out], dtype
    void* workspace = nullptr;        ///< workspace_bytes(), aligned to 256; nullptr when that is 0
    std::int64_t x_stride = 0;
    std::int64_t x_scale_stride = 0;  ///< between the scales of two tokens; one_x_scale: has no meaning
    std::int64_t weight_stride = 0;   ///< w8a8 and fp8; packed codes have no rows
    std::int64_t residual_stride = 0;
    std::int64_t out_stride = 0;
    const void* norm_weight = nullptr;  ///< [in], dtype; needed when the operator has a norm
    float epsilon = 1e-5F;              ///< the norm's, from 0
};

/// A prepared QuantizedLinear.
class QuantizedLinearKernel : public PreparedKernel {
  public:
    QuantizedLinearKernel() = default;

    /// Enqueues the operator for `tokens` (0: does nothing). Checks fail before anything is enqueued.
    [[nodiscard]] Status run(CUstream_st* stream, const QuantizedLinearArgs& args,
                             std::int64_t tokens) const noexcept;
    /// Why run() refuses such a call: the argument's name, its value and what is allowed. Empty: it does not.
    [[nodiscard]] std::string refusal(const QuantizedLinearArgs& args, std::int64_t tokens) const;

    /// For Runtime::prepare().
    QuantizedLinearKernel(std::shared_ptr<const runtime::Prepared> prepared,
                          const QuantizedLinear& description)
        : PreparedKernel(std::move(prepared)), description_(description) {}

  private:
    QuantizedLinear description_;
};

}  // namespace hone
