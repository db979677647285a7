// RoPE and append on the host: the problem as plain numbers. A variant's plan stands in <variant>_plan.cpp,
// its configs and which of them to prefer in <variant>.cpp, beside <variant>.cu.
#pragma once

#include "kernel_templates/kit/ceil_div.h"
#include "kernel_templates/kit/launches.h"
#include "kernel_templates/rope_kv_append/declaration.h"

namespace hone::rope_kv_append {

/// The cache when tuning: just what the new tokens fill, so that every element of it is written. Sequences
/// have q_tokens each if that works out with the tokens and their pages; else there is but one.
struct TuningCache {
    std::int64_t sequences = 1;
    std::int64_t sequence_tokens = 0;
    std::int64_t sequence_pages = 1;
    std::int64_t outer_tokens = 0;  ///< tokens of a page, or of a sequence of a contiguous cache

    [[nodiscard]] std::int64_t pages() const { return sequences * sequence_pages; }
};

/// A problem as numbers.
struct RopeProblem : Fields {
    RopeProblem() = default;
    explicit RopeProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    [[nodiscard]] bool quantized() const { return kv_dtype == KvDtype::fp8; }
    [[nodiscard]] bool paged() const { return page_size != 0; }
    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
    [[nodiscard]] Dtype cache_dtype() const { return quantized() ? Dtype::fp8_e4m3 : dtype; }
    /// Heads of a token: queries, keys, values.
    [[nodiscard]] std::int64_t all_heads() const { return heads + 2 * kv_heads; }
    /// Angles of a token; a table without any has one column that nobody reads.
    [[nodiscard]] std::int64_t angles() const { return rotary_dim == 0 ? 1 : rotary_dim / 2; }

    [[nodiscard]] TuningCache tuning() const {
        const std::int64_t unit = paged() ? page_size : 1;
        const bool works_out = !slots && tokens % q_tokens == 0 && q_tokens % unit == 0;
        TuningCache cache{.sequence_tokens = works_out ? q_tokens : tokens};
        cache.sequences = tokens / cache.sequence_tokens;
        cache.sequence_pages = paged() ? ceil_div(cache.sequence_tokens, page_size) : 1;
        cache.outer_tokens = paged() ? page_size : cache.sequence_tokens;
        return cache;
    }
    // Positions count up when tuning; lengths are all the same.
    [[nodiscard]] std::int64_t position_count() const { return slots ? tokens : tuning().sequences; }
    [[nodiscard]] Fill position_fill() const { return slots ? Fill::ramp : Fill::constant; }
    [[nodiscard]] std::int64_t first_position() const { return slots ? 0 : tuning().sequence_tokens; }
    /// Pages in any order; but the last page of all, if it is not filled, has to be the pool's last.
    [[nodiscard]] Fill page_fill() const {
        return paged() && tokens % page_size == 0 ? Fill::permutation : Fill::ramp;
    }
};

}  // namespace hone::rope_kv_append
