// Attention decode on the host: the problem as plain numbers, the call's arguments, what the variants' plans
// share, and the variants. A variant's tunables, constraints and cost stand in <variant>.cpp beside
// <variant>.cu.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "kernel_templates/attention_decode/geometry.cuh"
#include "kernel_templates/family.h"

namespace hone::attention_decode {

/// Index of each pointer of a call.
enum Pointer : int {
    q,
    k_cache,
    v_cache,
    kv_lengths,
    page_table,
    k_scale,
    v_scale,
    out,
    lse,
    workspace,
    pointer_count
};
/// Index of each scalar of a call. Strides count elements.
enum CallScalar : int {
    batch,
    kv_len,
    q_len,
    q_batch_stride,
    q_token_stride,
    q_head_stride,
    out_batch_stride,
    out_token_stride,
    out_head_stride,
    cache_stride,  ///< from one sequence, or page, to the next; of k_cache and v_cache, as the next two
    cache_token_stride,
    cache_head_stride,
    page_table_stride,  ///< entries a sequence
    pool_pages,
    scale,    ///< float32, above 0
    softcap,  ///< float32, above 0
    scalar_count
};

/// A problem as numbers.
struct DecodeProblem {
    Dtype dtype = Dtype::bf16;
    bool fp8_cache = false;
    bool causal = false;
    std::int64_t window = 0;
    bool softcap = false;
    bool lse = false;
    bool lengths = false;
    std::int64_t page_size = 0;
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t q_tokens = 0;
    std::int64_t batch = 0;
    std::int64_t kv_len = 0;
    std::int64_t q_len = 0;

    [[nodiscard]] Dtype cache_dtype() const { return fp8_cache ? Dtype::fp8_e4m3 : dtype; }
    [[nodiscard]] std::int64_t cache_element_bytes() const { return size_bytes(cache_dtype()); }
    [[nodiscard]] std::int64_t group() const { return heads / kv_heads; }
    [[nodiscard]] std::int64_t rows() const { return group() * q_tokens; }
    /// Pages that hold kv_len tokens.
    [[nodiscard]] std::int64_t pages() const { return (kv_len + page_size - 1) / page_size; }
    /// Tokens of a sequence that some query sees.
    [[nodiscard]] std::int64_t tokens_seen() const {
        return window == 0 ? kv_len : std::min(kv_len, window + q_tokens - 1);
    }
    /// Of K and V that a call must read.
    [[nodiscard]] double cache_bytes() const {
        return 2.0 * static_cast<double>(batch * tokens_seen()) *
               static_cast<double>(kv_heads * head_dim * cache_element_bytes());
    }
};
[[nodiscard]] DecodeProblem decode_problem(const Problem&);

extern const Variant ring;
extern const Variant registers;
extern const Variant plain;

[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// How a candidate of any variant cuts the cache into slots, and how their pieces meet.
struct Cut {
    Geometry geometry;
    std::int64_t unit = 16;  ///< tokens
    std::int64_t blocks_per_sm = 1;
    bool last_block = false;
};
/// Blocks of the main launch: as many as are resident, and no more than leave each warp a unit.
[[nodiscard]] std::int64_t blocks(const DecodeProblem&, const Cut&, const DeviceTraits&);
/// The main launch, and the one that combines where pieces meet in one; fills in grids and the workspace.
[[nodiscard]] Plan plan(const char* kernel, const DecodeProblem&, const Cut&, const DeviceTraits&);
/// A launch of the signature that all kernels begin with: all pointers, then all scalars.
[[nodiscard]] Launch launch(const char* kernel, Dim3 grid, std::int64_t threads);

/// For a fallback: of some configs of a variant the allowed one that its cost model likes best, the first of
/// equals.
[[nodiscard]] std::optional<Config> best_of(const Problem&, const Variant&, std::span<const Config>,
                                            const DeviceTraits&);

// What constraints of several variants ask.
/// Blocks' rows, 8 or 16, or 1 to 8 for plain: no more than hold all rows, in the least of `values`.
[[nodiscard]] bool rows_exist(const DecodeProblem&, std::int64_t rows, std::int64_t fewer);
/// Lists side by side: more than one, a slot each at least.
[[nodiscard]] bool lists_fit_side_by_side(const DecodeProblem&, const Cut&, const DeviceTraits&);
/// Elements of an access of 16 bytes of the cache, of which heads must be whole; 8 at least: accesses to q.
[[nodiscard]] std::int64_t wide_access(const DecodeProblem&);
/// Tensor cores multiply what is not float32, in whole accesses.
[[nodiscard]] bool has_wide_rows(const DecodeProblem&);

/// What the cost model needs of a candidate.
struct Stream {
    double in_flight_bytes = 0;  ///< of a block, on their way from memory
    double instructions = 0;     ///< of a warp for 16 tokens of a list
    double rest_us = 0;          ///< what a call takes besides, without the meeting of pieces
    double slowdown = 1;         ///< of the memory's stream
};
/// Modelled microseconds: rounds of resident blocks, each the soft maximum of the cache over the memory's
/// bandwidth, over what the copies in flight can draw, and of issue slots; plus the rest. Fitted to 81
/// candidates in 12 problems measured on an H100: four of five within 5 %.
[[nodiscard]] double predict_us(const DecodeProblem&, const Cut&, const Stream&, const DeviceTraits&);

}  // namespace hone::attention_decode
