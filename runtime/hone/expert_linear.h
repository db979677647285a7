// ExpertLinear. Describe the operator, let Runtime::prepare() make a kernel object of it, call run() as often
// as you like: it is safe from many threads at once and under stream capture, takes no lock, allocates
// nothing and makes no system call of its own. The calling thread needs the device's primary context current,
// as after any call of the CUDA runtime; a thread without a context gets it at its first run(). Generated
// from kernel_templates/expert_linear/operators.py by `./hone generate`.
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

/// A linear layer of a mixture of experts: row p of x, sorted by expert as ExpertRouting says, times the
/// weight of expert e with starts[e] <= p < starts[e + 1], accumulated in fp32. activation(x * weight^T +
/// bias); gated: activation(x * weight^T + bias) * (x * up^T + up_bias), but with swiglu_oai what Activation
/// says of both. With gather, x has a row for each token, and place p takes that of token rows[p] / top_k.
/// With combine, out has a row for each token: the sum over slots, in their order and in fp32, of
/// routing_weights[token, slot] times the result of that pair, which was rounded to dtype before.
struct ExpertLinear {
    std::int64_t in = 0;             ///< elements of a row of x, 1 to 262144
    std::int64_t out = 0;            ///< elements of a row of out, 1 to 1048576
    std::int64_t experts = 0;        ///< 1 to 512
    std::int64_t top_k = 0;          ///< experts of a token, 1 to 32
    std::int64_t max_tokens = 8192;  ///< most tokens of one call
    Dtype dtype = Dtype::bf16;       ///< element type of x, weights and out; fp32, fp16 or bf16
    Activation activation = Activation::none;
    bool gated = false;  ///< there is a second weight, up
    bool bias = false;
    bool gather = false;   ///< x has a row for each token
    bool combine = false;  ///< out has a row for each token
};

/// One call. A stride is the distance between two rows in elements, 0 meaning the row's length; weights are
/// contiguous. 16 bytes always suffice as alignment of pointers and strides. out overlaps nothing else.
/// `starts` and `rows` are on the device: what they say beyond the call's places is not read, and nothing is
/// written there; rows of out that no place has then keep what they hold, and are nothing to rely on with
/// combine.
struct ExpertLinearArgs {
    /// [tokens, in] with gather, else [tokens, top_k, in]: tokens * top_k rows by place; dtype
    const void* x = nullptr;
    /// [experts + 1]: the first place of each expert, and tokens * top_k
    const std::int32_t* starts = nullptr;
    /// [tokens, top_k]; needed with gather or combine: the pairs by place, token * top_k + slot
    const std::int32_t* rows = nullptr;
    const float* routing_weights = nullptr;  ///< [tokens, top_k]; needed with combine
    const void* weight = nullptr;            ///< [experts, out, in], dtype
    const void* up = nullptr;                ///< [experts, out, in]; needed when the operator is gated
    const void* bias = nullptr;              ///< [experts, out], dtype; needed when the operator has a bias
    const void* up_bias = nullptr;  ///< [experts, out]; needed when the operator is gated and has biases
    /// [tokens, out] with combine, else [tokens, top_k, out]: tokens * top_k rows by place; dtype
    void* out = nullptr;
    void* workspace = nullptr;  ///< workspace_bytes(), aligned to 256; nullptr when that is 0
    std::int64_t x_stride = 0;
    std::int64_t out_stride = 0;
};

/// A prepared ExpertLinear.
class ExpertLinearKernel : public PreparedKernel {
  public:
    ExpertLinearKernel() = default;

    /// Enqueues the operator for `tokens` (0: does nothing). Checks fail before anything is enqueued.
    [[nodiscard]] Status run(CUstream_st* stream, const ExpertLinearArgs& args,
                             std::int64_t tokens) const noexcept;
    /// Why run() refuses such a call: the argument's name, its value and what is allowed. Empty: it does not.
    [[nodiscard]] std::string refusal(const ExpertLinearArgs& args, std::int64_t tokens) const;

    /// For Runtime::prepare().
    ExpertLinearKernel(std::shared_ptr<const runtime::Prepared> prepared, const ExpertLinear& description,
                       bool checks_indices)
        : PreparedKernel(std::move(prepared)), description_(description), checks_indices_(checks_indices) {}

  private:
    ExpertLinear description_;
    bool checks_indices_ = false;  ///< RuntimeOptions::check_indices
};

}  // namespace hone
