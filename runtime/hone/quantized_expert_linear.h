// QuantizedExpertLinear. Describe the operator, let Runtime::prepare() make a kernel object of it, call run()
// as often as you like: it is safe from many threads at once and under stream capture, takes no lock,
// allocates nothing and makes no system call of its own. The calling thread needs the device's primary
// context current, as after any call of the CUDA runtime; a thread without a context gets it at its first
// run(). Generated from kernel_templates/quantized_expert_linear/operators.py by `./hone generate`.
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

/// ExpertLinear with quantized weights, all of one format: row p of x, sorted by expert as ExpertRouting
/// says, times the weight of expert e with starts[e] <= p < starts[e + 1], whose elements are (code - zero
/// point) * scale. gather, combine, biases and gates are as there.
///
/// w4a16 and w8a16 multiply x as it is; weights may be rounded to dtype before that. w8a8 and fp8 multiply
/// codes with codes, which are made of x first, with a scale for each row (fp8 with a group: for each 128
/// columns of it), the largest magnitude at 127 or 448.
struct QuantizedExpertLinear {
    std::int64_t in = 0;             ///< elements of a row of x, 1 to 262144
    std::int64_t out = 0;            ///< elements of a row of out, 1 to 1048576
    std::int64_t experts = 0;        ///< 1 to 512
    std::int64_t top_k = 0;          ///< experts of a token, 1 to 32
    std::int64_t max_tokens = 8192;  ///< most tokens of one call
    Dtype dtype = Dtype::bf16;       ///< element type of x, biases and out; fp16 or bf16
    QuantFormat format = QuantFormat::w4a16;
    /// columns of a weight that share a scale; 0: all of a row. As in QuantizedLinear: w4a16: 32, 64 or 128,
    /// dividing `in`; fp8: 128, dividing `in`, for a scale each 128 x 128; others: 0, 0 to 128
    std::int64_t group = 0;
    bool zeros = false;  ///< w4a16: codes have zero points, one a group
    Activation activation = Activation::none;
    bool gated = false;  ///< there is a second weight, up
    bool bias = false;
    bool gather = false;   ///< x has a row for each token
    bool combine = false;  ///< out has a row for each token
};

/// One call. A stride is the distance between two rows in elements, 0 meaning the row's length; weights have
/// no gaps. 16 bytes always suffice as alignment of pointers and strides. out overlaps nothing else. Codes,
/// scales and zero points of a weight are those of QuantizedLinearArgs, expert after expert. What
/// ExpertLinearArgs says of `starts` and `rows` holds here, too.
struct QuantizedExpertLinearArgs {
    /// [tokens, in] with gather, else [tokens, top_k, in]: tokens * top_k rows by place; dtype
    const void* x = nullptr;
    /// [experts + 1]: the first place of each expert, and tokens * top_k
    const std::int32_t* starts = nullptr;
    /// [tokens, top_k]; needed with gather or combine: the pairs by place, token * top_k + slot
    const std::int32_t* rows = nullptr;
    const float* routing_weights = nullptr;  ///< [tokens, top_k]; needed with combine
    QuantizedWeightPointers weight;          ///< [experts, out, in]
    QuantizedWeightPointers up;              ///< [experts, out, in]; needed when the operator is gated
    const void* bias = nullptr;              ///< [experts, out], dtype; needed when the operator has a bias
    const void* up_bias = nullptr;  ///< [experts, out]; needed when the operator is gated and has biases
    /// [tokens, out] with combine, else [tokens, top_k, out]: tokens * top_k rows by place; dtype
    void* out = nullptr;
    void* workspace = nullptr;  ///< workspace_bytes(), aligned to 256; nullptr when that is 0
    std::int64_t x_stride = 0;
    std::int64_t out_stride = 0;
};

/// A prepared QuantizedExpertLinear.
class QuantizedExpertLinearKernel : public PreparedKernel {
  public:
    QuantizedExpertLinearKernel() = default;

    /// Enqueues the operator for `tokens` (0: does nothing). Checks fail before anything is enqueued.
    [[nodiscard]] Status run(CUstream_st* stream, const QuantizedExpertLinearArgs& args,
                             std::int64_t tokens) const noexcept;
    /// Why run() refuses such a call: the argument's name, its value and what is allowed. Empty: it does not.
    [[nodiscard]] std::string refusal(const QuantizedExpertLinearArgs& args, std::int64_t tokens) const;

    /// For Runtime::prepare().
    QuantizedExpertLinearKernel(std::shared_ptr<const runtime::Prepared> prepared,
                                const QuantizedExpertLinear& description, bool checks_indices)
        : PreparedKernel(std::move(prepared)), description_(description), checks_indices_(checks_indices) {}

  private:
    QuantizedExpertLinear description_;
    bool checks_indices_ = false;  ///< RuntimeOptions::check_indices
};

}  // namespace hone
