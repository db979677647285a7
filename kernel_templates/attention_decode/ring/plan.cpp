#include "kernel_templates/attention_decode/ring/plan.h"

namespace hone::attention_decode {

Ring shape(const DecodeProblem& p, const RingConfig& c) {
    Ring ring{.geometry = geometry_of(p, c),
              .page_size = static_cast<int>(p.page_size),
              .unit = static_cast<int>(c.unit),
              .stages = static_cast<int>(c.stages),
              .producers = static_cast<int>(c.producers)};
    ring.geometry.cluster = static_cast<int>(c.cluster);
    return ring;
}

Cut cut(const DecodeProblem& p, const RingConfig& c) { return cut_of(shape(p, c).geometry, c); }

TensorMap cache_map(const DecodeProblem& p, const Ring& ring, int pointer, const CacheScalars& scalars) {
    TensorMap map{.pointer = static_cast<std::uint8_t>(pointer), .dtype = p.cache_dtype(), .rank = 4};
    map.swizzle_bytes = 128;
    map.extents = {static_cast<std::uint32_t>(p.head_dim), static_cast<std::uint32_t>(p.page_size),
                   static_cast<std::uint32_t>(p.kv_heads), 1, 1};
    if (!p.paged()) map.extent_scalars[1] = scalars.kv_len;
    map.extent_scalars[3] = p.paged() ? scalars.pool_pages : scalars.batch;
    map.stride_scalars = {scalars.token_stride, scalars.head_stride, scalars.stride, 0};
    // Producers with cp.async take no boxes, but the map must be a valid one.
    const int tokens = ring.copy_engine() ? ring.box_tokens() : 1;
    map.box = {static_cast<std::uint16_t>(ring.panel_columns()), static_cast<std::uint16_t>(tokens), 1, 1, 1};
    return map;
}

Plan ring_launches(std::span<const Kernel> kernels, const DecodeProblem& p, const RingConfig& c,
                   const DeviceTraits& traits) {
    const Ring ring = shape(p, c);
    Plan plan = cut_plan(kernels, p, cut(p, c), traits);
    plan.launches[0].block.x = static_cast<std::uint32_t>(ring.threads());
    plan.launches[0].shared_bytes = static_cast<std::uint32_t>(ring.shared_bytes());
    // Of several blocks a multiprocessor, fewer ones would not leave any multiprocessor free.
    plan.runs_beside = c.blocks_per_sm == 1 || c.cluster > 1;
    return plan;
}

Plan ring_plan(const DecodeProblem& p, const RingConfig& c, const DeviceTraits& traits) {
    constexpr CacheScalars scalars{.kv_len = kv_len,
                                   .batch = batch,
                                   .pool_pages = pool_pages,
                                   .token_stride = cache_token_stride,
                                   .head_stride = cache_head_stride,
                                   .stride = cache_stride};
    const Ring ring = shape(p, c);
    Plan plan = ring_launches(ring_kernels, p, c, traits);
    add_map(plan, cache_map(p, ring, k_cache, scalars));
    add_map(plan, cache_map(p, ring, v_cache, scalars));
    return plan;
}

}  // namespace hone::attention_decode
