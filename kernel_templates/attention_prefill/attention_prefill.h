// Attention of many queries on the host: the problem as plain numbers. A variant has a folder: plan.h and
// plan.cpp (how its kernel is launched), space.cpp (its configs, and which of them to prefer), kernel.cu.
#pragma once

#include "kernel_templates/attention_prefill/declaration.h"
#include "kernel_templates/kit/ceil_div.h"
#include "kernel_templates/kit/launches.h"

namespace hone::attention_prefill {

/// A problem as numbers.
struct AttentionProblem : Fields {
    AttentionProblem() = default;
    explicit AttentionProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    [[nodiscard]] bool packed() const { return lengths == Lengths::cumulative; }
    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
    /// Heads of all sequences.
    [[nodiscard]] std::int64_t slots() const { return batch * heads; }
    /// Whether causal tiles differ in length: a window makes them equal.
    [[nodiscard]] bool has_ramp() const { return causal && window == 0; }

    // When tuning, packed tensors have one sequence behind the other.
    [[nodiscard]] std::int64_t tensors() const { return packed() ? 1 : batch; }
    [[nodiscard]] std::int64_t tensor_tokens(std::int64_t tokens) const {
        return packed() ? batch * tokens : tokens;
    }
    /// By how many keys a sequence is shorter than the one before it, when tuning with lengths: from kv_len
    /// down, but by no more than a half and not below q_len.
    [[nodiscard]] std::int64_t tuning_step() const {
        return (kv_len - (q_len < kv_len ? q_len : kv_len)) / 2 / batch;
    }
};

}  // namespace hone::attention_prefill
