// ExpertRouting. Describe the operator, let Runtime::prepare() make a kernel object of it, call run() as
// often as you like: it is safe from many threads at once and under stream capture, takes no lock, allocates
// nothing and makes no system call of its own. The calling thread needs the device's primary context current,
// as after any call of the CUDA runtime; a thread without a context gets it at its first run(). Generated
// from kernel_templates/expert_routing/operators.py by `./hone generate`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "hone/error.h"
#include "hone/prepared_kernel.h"
#include "kernel_templates/dtype.h"

namespace hone {

/// Routing of a mixture of experts: of each token's softmax over all experts the top_k largest, in this
/// order, of equal ones the first, with `renormalize` divided by their sum; and all pairs of a token and a
/// slot, number token * top_k + slot, sorted by expert, those of one expert in their own order. The result is
/// the same in every call. NaN counts as minus infinity.
struct ExpertRouting {
    std::int64_t experts = 0;        ///< logits a token, 1 to 512
    std::int64_t top_k = 0;          ///< experts that a token goes to, 1 to 32
    std::int64_t max_tokens = 8192;  ///< most tokens of one call
    Dtype dtype = Dtype::bf16;       ///< element type of the logits; fp32, fp16 or bf16
    bool renormalize = false;
};

/// One call. `logits_stride` is the distance between two rows in elements, 0 meaning `experts`.
struct ExpertRoutingArgs {
    const void* logits = nullptr;      ///< [tokens, experts], dtype
    float* routing_weights = nullptr;  ///< [tokens, top_k]; those of slot 0 first, the largest
    /// [experts + 1]: the first place of each expert's pairs, and tokens * top_k
    std::int32_t* starts = nullptr;
    /// [tokens, top_k]; the pairs by place: tokens * top_k numbers, token * top_k + slot
    std::int32_t* rows = nullptr;
    void* workspace = nullptr;  ///< workspace_bytes(), aligned to 256; nullptr when that is 0
    std::int64_t logits_stride = 0;
};

/// A prepared ExpertRouting.
class ExpertRoutingKernel : public PreparedKernel {
  public:
    ExpertRoutingKernel() = default;

    /// Enqueues the operator for `tokens` (0: does nothing). Checks fail before anything is enqueued.
    [[nodiscard]] Status run(CUstream_st* stream, const ExpertRoutingArgs& args,
                             std::int64_t tokens) const noexcept;
    /// Why run() refuses such a call: the argument's name, its value and what is allowed. Empty: it does not.
    [[nodiscard]] std::string refusal(const ExpertRoutingArgs& args, std::int64_t tokens) const;

    /// For Runtime::prepare().
    ExpertRoutingKernel(std::shared_ptr<const runtime::Prepared> prepared, const ExpertRouting& description)
        : PreparedKernel(std::move(prepared)), description_(description) {}

  private:
    ExpertRouting description_;
};

}  // namespace hone
