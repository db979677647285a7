// Attention of a step: rotation and append, attention over the cache, and both in one launch.
#include "decoder/forward/forward_memory.h"
#include "decoder/forward/step_calls.h"

namespace hone::decoder {
namespace {

/// Queries, keys and values of each token as the projection leaves them: parts of one row.
struct Projected {
    Projected(const Bytes& qkv, const Description& model)
        : q(qkv.data()),
          k(q + model.q_width() * model.element_bytes()),
          v(k + model.kv_width() * model.element_bytes()),
          strides{.batch = 0, .token = model.qkv_width(), .head = 0} {}

    std::byte* q;
    const std::byte* k;
    const std::byte* v;
    AttentionStrides strides;
};

/// Of keys and values, [pages, kv_heads, page_size, head_dim]: what a block of attention reads of a page, the
/// tokens of one head, is one piece of memory.
AttentionStrides cache_strides(const models::Model& model, const Capacity& capacity) {
    const std::int64_t head = capacity.page_size * model.head_dim;
    return {.batch = model.num_key_value_heads * head, .token = model.head_dim, .head = head};
}

}  // namespace

std::pair<const float*, const float*> StepCalls::kv_scales_at(std::int64_t layer) const {
    const std::int64_t first = layer * model_.model.num_key_value_heads;
    return {memory_.k_scales.data() + first, memory_.v_scales.data() + first};
}

void StepCalls::enqueue_append(std::int64_t layer, const ForwardStep& step) const {
    const models::Model& m = model_.model;
    const StepInputs::Arrays& in = step.in();
    const Projected rows(memory_.qkv, model_);
    const LayerWeights& weights = weights_.layers[elements(layer)];
    const auto [k_scale, v_scale] = kv_scales_at(layer);
    RopeKvAppendArgs args{.q = rows.q,
                          .k = rows.k,
                          .v = rows.v,
                          .out = rows.q,
                          .k_cache = memory_.keys[elements(layer)].data(),
                          .v_cache = memory_.values[elements(layer)].data(),
                          .cos = memory_.cosines(layer),
                          .sin = memory_.sines(layer),
                          .k_scale = k_scale,
                          .v_scale = v_scale,
                          .q_weight = weights.q_norm,
                          .k_weight = weights.k_norm,
                          .q_strides = rows.strides,
                          .k_strides = rows.strides,
                          .v_strides = rows.strides,
                          .out_strides = rows.strides,
                          .cache_strides = cache_strides(m, capacity_),
                          .kv_len = capacity_.context,
                          .pool_pages = capacity_.pages,
                          .table_rows = capacity_.context,
                          .epsilon = static_cast<float>(m.norm_epsilon)};
    if (step.one_each) {
        args.kv_lengths = in.kv_lengths;
        args.page_table = in.pages;
        args.page_table_stride = step.inputs.pages_a_sequence();
        require(operators_.append.run(gpu_.stream(), args, step.sequences), "rotation and append");
        return;
    }
    args.positions = in.positions;
    args.slots = in.slots;
    require(operators_.append_anyhow.run(gpu_.stream(), args, step.tokens), "rotation and append");
}

/// Both of what is new and of the cache. Older keys and values may be read before the projection has ended:
/// those of this layer were written in steps before, whose graphs have ended, as has the copy of lengths and
/// pages.
void StepCalls::enqueue_appending(std::int64_t layer, const ForwardStep& step) const {
    const models::Model& m = model_.model;
    const StepInputs::Arrays& in = step.in();
    const LayerWeights& weights = weights_.layers[elements(layer)];
    const Projected rows(memory_.qkv, model_);
    const AttentionAppendArgs args{.q = rows.q,
                                   .k = rows.k,
                                   .v = rows.v,
                                   .out = memory_.attended.data(),
                                   .k_cache = memory_.keys[elements(layer)].data(),
                                   .v_cache = memory_.values[elements(layer)].data(),
                                   .cos = memory_.cosines(layer),
                                   .sin = memory_.sines(layer),
                                   .kv_lengths = in.kv_lengths,
                                   .page_table = in.pages,
                                   .q_weight = weights.q_norm,
                                   .k_weight = weights.k_norm,
                                   .workspace = memory_.workspace.data(),
                                   .q_strides = rows.strides,
                                   .k_strides = rows.strides,
                                   .v_strides = rows.strides,
                                   .cache_strides = cache_strides(m, capacity_),
                                   .page_table_stride = step.inputs.pages_a_sequence(),
                                   .pool_pages = capacity_.pages,
                                   .table_rows = capacity_.context,
                                   .scale = model_.score_scale(),
                                   .softcap = static_cast<float>(m.softcap),
                                   .epsilon = static_cast<float>(m.norm_epsilon)};
    require(
        operators_.appending[model_.window_of(layer)].run(gpu_.stream(), args, {step.sequences, step.kv_len}),
        "attention with the append");
}

void StepCalls::enqueue_attention(std::int64_t layer, const ForwardStep& step) const {
    if (step.one_each && operators_.appends_in_attention()) return enqueue_appending(layer, step);
    const StepInputs::Arrays& in = step.in();
    const auto [k_scale, v_scale] = kv_scales_at(layer);
    AttentionArgs args{.q = memory_.qkv.data(),
                       .k = memory_.keys[elements(layer)].data(),
                       .v = memory_.values[elements(layer)].data(),
                       .out = memory_.attended.data(),
                       .kv_lengths = in.kv_lengths,
                       .page_table = in.pages,
                       .k_scale = k_scale,
                       .v_scale = v_scale,
                       .sinks = weights_.layers[elements(layer)].sinks,
                       .workspace = memory_.workspace.data(),
                       .page_table_stride = step.inputs.pages_a_sequence(),
                       .pool_pages = capacity_.pages,
                       .scale = model_.score_scale(),
                       .softcap = static_cast<float>(model_.model.softcap)};
    const std::size_t window = model_.window_of(layer);
    args.q_strides.token = model_.qkv_width();
    args.q_strides.batch = model_.qkv_width();
    args.k_strides = args.v_strides = cache_strides(model_.model, capacity_);
    const AttentionSizes sizes{step.sequences, step.longest, step.kv_len};
    if (step.longest == 1) {
        require(operators_.one_query[window].run(gpu_.stream(), args, sizes), "attention");
        return;
    }
    args.q_starts = in.q_starts;
    args.q_tokens = step.tokens;
    args.prompts = step.prompts;
    require(operators_.any_queries[window].run(gpu_.stream(), args, sizes), "attention");
}

}  // namespace hone::decoder
