#include "kernel_templates/attention_prefill/wgmma/plan.h"

#include <algorithm>

namespace hone::attention_prefill::warpgroup {

Geometry geometry(const AttentionProblem& p, const WgmmaConfig& c) {
    return {.head_dim = static_cast<int>(p.head_dim),
            .consumers = static_cast<int>(c.consumers),
            .tile_n = static_cast<int>(c.tile_n),
            .stages = static_cast<int>(c.stages),
            .query_stages = static_cast<int>(c.query_stages),
            .blocks_per_sm = static_cast<int>(c.blocks_per_sm),
            .page_size = static_cast<int>(p.page_size),
            .cache_bytes = static_cast<int>(p.cache_element_bytes()),
            .bf16_queries = p.dtype == Dtype::bf16};
}

Sections sections(const AttentionProblem& p, const WgmmaConfig& c) {
    const std::int64_t head_bytes = 2 * p.kv_len * p.head_dim * p.element_bytes();
    const std::int64_t fitting = std::max<std::int64_t>(1, (c.section_mib << 20) / head_bytes);
    // One head of all sequences, where their queries are packed and keys come in pages (PackedOrder).
    const std::int64_t sequences = p.lengths == Lengths::paged ? p.batch : 1;
    const std::int64_t slots = p.slots() / sequences;
    const std::int64_t heads = std::min(slots, fitting * (p.heads / p.kv_heads));
    // The last section takes what remains, two to three times as much: its short tiles even out the end.
    return {.rows = static_cast<int>(rows(p, geometry(p, c)) * sequences),
            .heads = static_cast<int>(heads),
            .count = static_cast<int>(std::max<std::int64_t>(1, slots / heads - 1))};
}

std::int64_t rows(const AttentionProblem& p, const Geometry& g) { return ceil_div(p.q_len, g.tile_m()); }

std::int64_t tiles(const AttentionProblem& p, const Geometry& g) { return p.slots() * rows(p, g); }

std::int64_t places(const WgmmaConfig& c, const DeviceTraits& traits) {
    return traits.sm_count * c.blocks_per_sm;
}

namespace {

/// Which tensor a map is of, and how the call says where it stands.
struct Mapped {
    int pointer;
    std::int64_t tokens;
    std::int64_t heads;
    int first_stride;  ///< scalar: of a sequence; the next two of a token and of a head
    int tokens_scalar;
};

/// q, k or v by its strides: {head_dim, tokens, heads, sequences}; a packed one is a single sequence, with as
/// many tokens as the call says.
TensorMap tensor_map(const AttentionProblem& p, const Mapped& mapped, bool packed, int box_rows) {
    TensorMap map{.pointer = static_cast<std::uint8_t>(mapped.pointer),
                  .dtype = p.dtype,
                  .rank = 4,
                  .swizzle_bytes = row_bytes};
    map.extents = {static_cast<std::uint32_t>(p.head_dim), static_cast<std::uint32_t>(mapped.tokens),
                   static_cast<std::uint32_t>(mapped.heads), static_cast<std::uint32_t>(p.batch), 0};
    const auto scalar = [&mapped](int further) {
        return static_cast<std::uint8_t>(mapped.first_stride + further);
    };
    map.stride_scalars = {scalar(1), scalar(2), scalar(0), 0};
    if (packed) {
        map.extents[3] = 1;
        map.extent_scalars[1] = static_cast<std::uint8_t>(mapped.tokens_scalar);
        map.stride_scalars[2] = TensorMap::no_gaps;
    }
    map.box = {panel_width, static_cast<std::uint16_t>(box_rows), 1, 1, 0};
    return map;
}

/// k or v: a tensor like q, or {head_dim, page_size, kv_heads, pages}. Where threads copy, nothing reads
/// the map, but it must be a valid one.
TensorMap kv_map(const AttentionProblem& p, const Mapped& mapped, const Geometry& g) {
    const bool copies_codes = mapped.pointer == k && g.keys_stay_codes();
    TensorMap map = tensor_map(p, mapped, p.packs_keys(), g.by_rows() && !copies_codes ? 1 : g.box_rows());
    map.dtype = p.cache_dtype();
    if (copies_codes) map.box[0] = row_bytes;
    if (p.paged()) map.extent_scalars[3] = pool_pages;
    return map;
}

}  // namespace

Plan plan(const AttentionProblem& p, const WgmmaConfig& c, const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    Launch first = launch(kernels[0], grid_of(std::min(tiles(p, g), places(c, traits))), g.threads());
    first.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    first.programmatic = c.programmatic != 0;

    Plan plan = plan_of(first);
    plan.runs_beside = p.lengths == Lengths::paged && !g.by_rows();
    plan.workspace_bytes = c.dynamic != 0 || plan.runs_beside ? 8 : 0;
    add_map(plan, tensor_map(p, {q, p.q_len, p.heads, q_batch_stride, q_tokens}, p.packed(), block_rows));
    const std::int64_t keys = p.paged() ? p.page_size : p.kv_len;
    add_map(plan, kv_map(p, {k, keys, p.kv_heads, k_batch_stride, kv_tokens}, g));
    add_map(plan, kv_map(p, {v, keys, p.kv_heads, v_batch_stride, kv_tokens}, g));
    const Sections order = sections(p, c);
    add_value(plan, {.number = order.rows});
    add_value(plan, {.number = order.heads});
    add_value(plan, {.number = order.count});
    return plan;
}

}  // namespace hone::attention_prefill::warpgroup
