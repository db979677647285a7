// RoPE and append on the host: the problem as plain numbers, the call's arguments, and the variants. A
// variant's plan, constraints and cost stand in <variant>.cpp beside <variant>.cu.
#pragma once

#include <cstdint>

#include "kernel_templates/family.h"

namespace hone::rope_kv_append {

/// Index of each pointer of a call.
enum Pointer : int {
    q,
    k,
    v,
    kv_lengths,  ///< int32 [batch], new tokens included; with slots: positions, int32 [tokens]
    slots,       ///< int32 [tokens]
    page_table,  ///< int32 [batch, pages of a sequence]
    cos,         ///< float32 [positions, rotary_dim / 2]
    sin,
    q_weight,
    k_weight,
    k_scale,
    v_scale,
    q_out,
    k_cache,
    v_cache,
    pointer_count
};
/// Index of each scalar of a call. Strides count elements.
enum CallScalar : int {
    tokens,
    q_tokens,
    kv_len,
    q_token_stride,
    q_head_stride,
    k_token_stride,
    k_head_stride,
    v_token_stride,
    v_head_stride,
    q_out_token_stride,
    q_out_head_stride,
    cache_stride,  ///< of both caches: from one page, or one sequence, to the next
    cache_token_stride,
    cache_head_stride,
    page_table_stride,
    pool_pages,  ///< pages of the pool; sequences of a contiguous cache
    positions,   ///< rows of cos and sin
    epsilon,     ///< float32, of the norms
    scalar_count
};

/// A problem as numbers.
struct RopeProblem {
    Dtype dtype = Dtype::bf16;
    bool quantized = false;
    bool interleaved = false;
    bool norm = false;
    bool slots = false;
    std::int64_t page_size = 0;  ///< 0: contiguous
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t rotary_dim = 0;
    std::int64_t tokens = 0;
    std::int64_t q_tokens = 0;  ///< a sequence

    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
    [[nodiscard]] Dtype cache_dtype() const { return quantized ? Dtype::fp8_e4m3 : dtype; }
    /// Of a token: queries, keys, values.
    [[nodiscard]] std::int64_t all_heads() const { return heads + 2 * kv_heads; }
};
[[nodiscard]] RopeProblem rope_problem(const Problem&);

extern const Variant packets;
extern const Variant plain;

[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// A plan of one launch with the signature that all kernels share: all pointers, then all scalars.
[[nodiscard]] Plan single_launch(const char* kernel, std::int64_t blocks, std::int64_t threads,
                                 bool programmatic);

/// Microseconds of one launch: launch and memory latency, plus bytes over bandwidth and instructions over
/// issue slots, joined by a soft maximum.
struct Footprint {
    double threads = 0;       ///< of the whole launch
    double instructions = 0;  ///< a thread
    double latency_us = 0;    ///< from a block's start to its end
    double slowdown = 1;      ///< of the memory's bandwidth
    bool programmatic = false;
};
[[nodiscard]] double predict_us(const Problem&, const Footprint&, const DeviceTraits&);

/// Of variants whose tunable `index` is "programmatic".
template <std::size_t index>
inline constexpr Constraint programmatic_needs_sm_90{
    "programmatic dependent launch needs sm_90", [](const Problem&, const Config& c, const DeviceTraits& t) {
        return c[index] == 0 || t.has_programmatic_launch();
    }};

}  // namespace hone::rope_kv_append
