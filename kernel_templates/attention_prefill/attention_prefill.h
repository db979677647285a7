// Attention of many queries on the host: the problem as plain numbers, the call's arguments, and the
// variants. A variant's plan, constraints and cost stand in <variant>.cpp beside <variant>.cu.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kernel_templates/family.h"

namespace hone::attention_prefill {

/// Index of each pointer of a call.
enum Pointer : int { q, k, v, q_starts, kv_starts, kv_lengths, out, lse, workspace, pointer_count };
/// Index of each scalar of a call. Strides count elements; a row of head_dim elements is contiguous.
enum CallScalar : int {
    batch,
    q_len,
    kv_len,
    q_tokens,  ///< rows of the packed tensor; batch * q_len where it is not packed
    kv_tokens,
    q_batch_stride,
    q_token_stride,
    q_head_stride,
    k_batch_stride,
    k_token_stride,
    k_head_stride,
    v_batch_stride,
    v_token_stride,
    v_head_stride,
    out_batch_stride,
    out_token_stride,
    out_head_stride,
    scale,    ///< float32, positive
    softcap,  ///< float32, positive
    scalar_count
};

/// Choices of the field `lengths`, in order.
enum class Lengths : std::int64_t { none, kv, cumulative };

/// A problem as numbers.
struct AttentionProblem {
    Dtype dtype = Dtype::bf16;
    bool causal = false;
    std::int64_t window = 0;  ///< keys that a query sees, itself included; 0: all
    bool softcap = false;
    bool lse = false;
    Lengths lengths = Lengths::none;
    std::int64_t heads = 1;
    std::int64_t kv_heads = 1;
    std::int64_t head_dim = 0;
    std::int64_t batch = 0;
    std::int64_t q_len = 0;   ///< of the longest sequence
    std::int64_t kv_len = 0;  ///< of the longest sequence

    [[nodiscard]] bool packed() const { return lengths == Lengths::cumulative; }
    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
    /// Heads of all sequences.
    [[nodiscard]] std::int64_t slots() const { return batch * heads; }
    /// Keys that the queries of a sequence of full length see, all together.
    [[nodiscard]] double visible_pairs() const;
    /// Of both products, over all sequences and heads.
    [[nodiscard]] double flops() const {
        return 4.0 * visible_pairs() * static_cast<double>(slots() * head_dim);
    }
};
[[nodiscard]] AttentionProblem attention_problem(const Problem&);

extern const Variant wgmma;
extern const Variant wgmma_tf32;
extern const Variant mma;
extern const Variant plain;

[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// A launch of the signature that most kernels share (problem.cuh): all pointers, then all scalars.
[[nodiscard]] Launch launch(const char* kernel, Dim3 grid, std::int64_t threads);

/// For a fallback: of some configs of a variant the allowed one that its cost model likes best, the first of
/// equals.
[[nodiscard]] std::optional<Config> best_of(const Problem&, const Variant&, std::span<const Config>,
                                            const DeviceTraits&);

}  // namespace hone::attention_prefill
