#include "decoder/forward/operators.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/system/parallel.h"

namespace hone::decoder {
namespace {

NormKernel prepared_norm(Runtime& runtime, const Description& description, std::int64_t rows, bool residual,
                         NormOutput output = NormOutput::same) {
    const models::Model& model = description.model;
    if (model.norm == "rmsnorm") {
        return runtime.prepare(RmsNorm{.hidden = model.hidden_size,
                                       .max_rows = rows,
                                       .dtype = model.dtype,
                                       .output = output,
                                       .residual = residual,
                                       .unit_offset = model.norm_unit_offset});
    }
    return runtime.prepare(LayerNorm{.hidden = model.hidden_size,
                                     .max_rows = rows,
                                     .dtype = model.dtype,
                                     .output = output,
                                     .residual = residual,
                                     .bias = model.norm_bias,
                                     .unit_offset = model.norm_unit_offset});
}

/// Of the queries, or the keys, of all heads of a token.
NormKernel prepared_norm_of_heads(Runtime& runtime, const models::Model& model, std::int64_t width,
                                  std::int64_t rows) {
    return runtime.prepare(RmsNorm{
        .hidden = width, .max_rows = rows, .dtype = model.dtype, .unit_offset = model.norm_unit_offset});
}

RopeKvAppendKernel prepared_append(Runtime& runtime, const models::Model& model, const Capacity& capacity,
                                   std::int64_t tokens, bool slots) {
    return runtime.prepare(
        RopeKvAppend{.heads = model.num_attention_heads,
                     .kv_heads = model.num_key_value_heads,
                     .head_dim = model.head_dim,
                     .rotary_dim = model.rotary_dim,
                     .max_tokens = tokens,
                     .dtype = model.dtype,
                     .kv_dtype = capacity.kv_dtype,
                     .style = model.interleaved_rotary ? RopeStyle::interleaved : RopeStyle::half,
                     .norm = model.qk_norm && model.head_norm == models::HeadNorm::shared,
                     .slots = slots,
                     .page_size = capacity.page_size});
}

Attention attention_of(const models::Model& model, const Capacity& capacity, std::int64_t window) {
    return {.heads = model.num_attention_heads,
            .kv_heads = model.num_key_value_heads,
            .head_dim = model.head_dim,
            .max_batch = capacity.sequences,
            .max_kv_len = capacity.context,
            .dtype = model.dtype,
            .kv_dtype = capacity.kv_dtype,
            .softcap = model.softcap > 0,
            .window = window,
            .page_size = capacity.page_size};
}

AttentionKernel prepared_one_query(Runtime& runtime, const models::Model& model, const Capacity& capacity,
                                   std::int64_t window) {
    Attention attention = attention_of(model, capacity, window);
    attention.max_q_len = 1;
    attention.causal = window > 0;  // a single query sees all keys
    attention.lengths = true;
    return runtime.prepare(attention);
}

/// Attention of one query a sequence that rotates and appends, too. Empty where that takes two launches: for
/// caches of codes, norms of all heads together, and where the kernel that is faster than both does not
/// exist.
AttentionAppendKernel prepared_appending(Runtime& runtime, const models::Model& model,
                                         const Capacity& capacity, std::int64_t window) {
    if (capacity.kv_dtype != KvDtype::same) return {};
    if (model.qk_norm && model.head_norm != models::HeadNorm::shared) return {};
    const AttentionAppend append{.heads = model.num_attention_heads,
                                 .kv_heads = model.num_key_value_heads,
                                 .head_dim = model.head_dim,
                                 .rotary_dim = model.rotary_dim,
                                 .max_batch = capacity.sequences,
                                 .max_kv_len = capacity.context,
                                 .dtype = model.dtype,
                                 .style = model.interleaved_rotary ? RopeStyle::interleaved : RopeStyle::half,
                                 .norm = model.qk_norm,
                                 .softcap = model.softcap > 0,
                                 .window = window,
                                 .page_size = capacity.page_size};
    // By the fallback, not by what is chosen: a step has the same launches before and behind its tuning.
    const Explanation one = runtime.explain(append, {1, capacity.context});
    return one.fallback.starts_with("plain ") ? AttentionAppendKernel() : runtime.prepare(append);
}

AttentionKernel prepared_any_queries(Runtime& runtime, const models::Model& model, const Capacity& capacity,
                                     std::int64_t window) {
    Attention attention = attention_of(model, capacity, window);
    attention.max_q_len = std::min(capacity.step_tokens, capacity.context);
    attention.packed = true;
    return runtime.prepare(attention);
}

EmbeddingKernel prepared_embedding(Runtime& runtime, const models::Model& model, std::int64_t tokens) {
    return runtime.prepare(Embedding{.hidden = model.hidden_size,
                                     .max_tokens = tokens,
                                     .dtype = model.dtype,
                                     .scale = model.embedding_scale,
                                     .positions = model.learned_positions});
}

/// A look-up in what has been computed.
EmbeddingKernel prepared_rows(Runtime& runtime, const models::Model& model, std::int64_t width,
                              std::int64_t rows) {
    return runtime.prepare(Embedding{.hidden = width, .max_tokens = rows, .dtype = model.dtype});
}

SampleKernel prepared_sample(Runtime& runtime, const models::Model& model, std::int64_t rows, bool filters) {
    return runtime.prepare(Sample{.vocabulary = model.vocab_size,
                                  .max_rows = rows,
                                  .dtype = model.dtype,
                                  .filters = filters,
                                  .softcap = static_cast<std::int64_t>(model.logit_cap)});
}

/// Layers without such a weight do not count.
WeightKinds kinds_of(const ModelWeights& weights, MatrixWeight LayerWeights::*weight) {
    WeightKinds kinds{.format = weights.code_format};
    for (const LayerWeights& layer : weights.layers) {
        if ((layer.*weight).rows == 0) continue;
        kinds.numbers |= !(layer.*weight).is_coded;
        kinds.codes |= (layer.*weight).is_coded;
    }
    return kinds;
}

/// Of the networks of layers without experts, or with them.
WeightKinds kinds_of_networks(const ModelWeights& weights, bool with_experts = false) {
    WeightKinds kinds{.format = weights.code_format};
    for (const LayerWeights& layer : weights.layers) {
        if (layer.has_experts() != with_experts) continue;
        kinds.numbers |= !layer.up.is_coded;
        kinds.codes |= layer.up.is_coded;
    }
    return kinds;
}

/// What norms in front of products write: codes with a scale a row where all of these multiply such.
NormOutput output_of_norms(const Description& model, const ModelWeights& weights) {
    if (!model.has_norms_in_front()) return NormOutput::same;
    const checkpoints::WeightFormat& format = weights.code_format;
    const auto has_codes = [](const LayerWeights& layer) {
        return layer.qkv.is_coded && layer.up.is_coded && !layer.has_experts();
    };
    if (!format.format || format.group != 0 || !std::ranges::all_of(weights.layers, has_codes))
        return NormOutput::same;
    switch (*format.format) {
        case QuantFormat::w8a8: return NormOutput::int8;
        case QuantFormat::fp8: return NormOutput::fp8;
        default: return NormOutput::same;
    }
}

/// Of queries, keys and values.
Linear projection_of(const Description& model, std::int64_t tokens) {
    return {.in = model.model.hidden_size,
            .out = model.qkv_width(),
            .max_tokens = tokens,
            .dtype = model.model.dtype,
            .bias = model.model.qkv_bias};
}

/// Numbers of sequences whose steps have norms and sums within their products: where both products behind a
/// norm have kernels for which that is no more than a launch less. More sequences gained nothing, nor did
/// more than one where weights are numbers.
std::vector<std::int64_t> find_whole_steps(Runtime& runtime, const Description& model,
                                           const ModelWeights& weights, const Capacity& capacity) {
    const models::Model& m = model.model;
    if (m.norms != models::NormPlaces::before || m.norm != "rmsnorm" || m.norm_unit_offset ||
        model.has_experts())
        return {};
    const WeightKinds qkv = kinds_of(weights, &LayerWeights::qkv);
    const WeightKinds network = kinds_of_networks(weights);
    std::vector<std::int64_t> found;
    const std::int64_t most = qkv.numbers || network.numbers ? 1 : 2;
    for (std::int64_t sequences = 1; sequences <= std::min(most, capacity.sequences); ++sequences) {
        if (Product::normalizes(runtime, projection_of(model, sequences), qkv, sequences) &&
            Network::normalizes(runtime, model, network, sequences))
            found.push_back(sequences);
    }
    return found;
}

ExpertLinear experts_of(const Description& model, std::int64_t tokens) {
    return {.experts = model.model.experts,
            .top_k = model.model.experts_per_token,
            .max_tokens = tokens,
            .dtype = model.model.dtype};
}

ExpertLinear experts_up(const Description& model, std::int64_t tokens) {
    ExpertLinear up = experts_of(model, tokens);
    up.in = model.model.hidden_size;
    up.out = model.expert_width();
    up.activation = model.activation();
    up.gated = true;
    up.gather = true;
    return up;
}

ExpertLinear experts_down(const Description& model, std::int64_t tokens) {
    ExpertLinear down = experts_of(model, tokens);
    down.in = model.expert_width();
    down.out = model.model.hidden_size;
    down.combine = true;
    return down;
}

ExpertRoutingKernel prepared_routing(Runtime& runtime, const models::Model& model, std::int64_t tokens) {
    return runtime.prepare(ExpertRouting{.experts = model.experts,
                                         .top_k = model.experts_per_token,
                                         .max_tokens = tokens,
                                         .dtype = model.dtype,
                                         .renormalize = model.renormalized_routing});
}

}  // namespace

std::int64_t LayerProducts::workspace_bytes(std::int64_t tokens) const {
    return std::max(
        {qkv.workspace_bytes(tokens), output.workspace_bytes(tokens), network.workspace_bytes(tokens)});
}

std::int64_t ExpertOperators::workspace_bytes(std::int64_t tokens) const {
    if (!up) return 0;
    return std::max({router.workspace_bytes(tokens), routing.workspace_bytes(tokens),
                     up.workspace_bytes(tokens), down.workspace_bytes(tokens)});
}

Operators::Operators(Runtime& runtime, const Description& model, const ModelWeights& weights,
                     const Capacity& capacity) {
    norms_write_codes = output_of_norms(model, weights) != NormOutput::same;
    whole_steps = find_whole_steps(runtime, model, weights, capacity);
    const std::size_t windows = model.windows().size();
    one_query.resize(windows);
    any_queries.resize(windows);
    appending.resize(windows);
    const std::vector<Preparation> all = preparations(runtime, model, weights, capacity);
    // Each on a thread of its own, most of which wait for compilers: so the images of all are compiled at
    // once.
    const auto count = static_cast<std::int64_t>(all.size());
    runtime::for_each_piece(count, static_cast<int>(count),
                            [&](std::int64_t piece) { all[static_cast<std::size_t>(piece)].prepare(); });
}

void Operators::prepare_again(Part part, Runtime& runtime, const Description& model,
                              const ModelWeights& weights, const Capacity& capacity) {
    for (const Preparation& preparation : preparations(runtime, model, weights, capacity)) {
        if (preparation.part == part) preparation.prepare();
    }
}

std::vector<PrepareReport> Operators::reports(Part part, std::int64_t tokens) const {
    std::vector<PrepareReport> reports;
    const auto add = [&](const PreparedKernel& kernel) { add_reports_of(kernel, reports); };
    const LayerProducts& products = are_whole(tokens) ? whole : plain;
    switch (part) {
        case Part::network_norm:
            if (!are_whole(tokens)) add(norms_write_codes ? coded_norm : norm);
            break;
        case Part::qkv: products.qkv.add_reports(reports); break;
        case Part::append:
            if (!appends_in_attention()) add(append);
            break;
        case Part::attention:
            if (appends_in_attention()) {
                for (const AttentionAppendKernel& kernel : appending) add(kernel);
            } else {
                for (const AttentionKernel& kernel : one_query) add(kernel);
            }
            break;
        case Part::output: products.output.add_reports(reports); break;
        case Part::network:
            products.network.add_reports(reports);
            experts.up.add_reports(reports);
            experts.down.add_reports(reports);
            break;
        case Part::head: head.add_reports(reports); break;
        default: break;
    }
    return reports;
}

// A norm of a sum is the network's and the next layer's: one kernel, called by the name of the first.
std::vector<Operators::Preparation> Operators::preparations(Runtime& runtime, const Description& model,
                                                            const ModelWeights& weights,
                                                            const Capacity& capacity) {
    const models::Model& m = model.model;
    const std::int64_t tokens = capacity.step_tokens;
    const NormOutput norms = output_of_norms(model, weights);
    std::vector<Preparation> all;
    const auto add = [&all](std::optional<Part> part, auto& kernel, auto prepare) {
        all.push_back({part, [&kernel, prepare] { kernel = prepare(); }});
    };
    const std::vector<std::int64_t> windows = model.windows();
    for (std::size_t i = 0; i < windows.size(); ++i) {
        const std::int64_t window = windows[i];
        add(Part::attention, appending[i],
            [&, window] { return prepared_appending(runtime, m, capacity, window); });
        add({}, any_queries[i], [&, window] { return prepared_any_queries(runtime, m, capacity, window); });
        add(Part::attention, one_query[i],
            [&, window] { return prepared_one_query(runtime, m, capacity, window); });
    }
    const bool codes = norms_write_codes;
    add(Part::qkv, plain.qkv, [&, tokens, codes] {
        return Product(runtime, projection_of(model, tokens), kinds_of(weights, &LayerWeights::qkv), codes);
    });
    if (model.has_wide_head_norms()) {
        add({}, query_norm,
            [&, tokens] { return prepared_norm_of_heads(runtime, m, model.q_width(), tokens); });
        add({}, key_norm,
            [&, tokens] { return prepared_norm_of_heads(runtime, m, model.kv_width(), tokens); });
    }
    const Linear back{.in = model.q_width(),
                      .out = m.hidden_size,
                      .max_tokens = tokens,
                      .dtype = m.dtype,
                      .bias = m.output_bias};
    add(Part::output, plain.output,
        [&, back] { return Product(runtime, back, kinds_of(weights, &LayerWeights::output)); });
    add(Part::network, plain.network,
        [&, tokens, codes] { return Network(runtime, model, tokens, kinds_of_networks(weights), codes); });
    if (!whole_steps.empty()) {
        const std::int64_t few = whole_steps.back();
        add(Part::qkv, whole.qkv, [&, few] {
            Linear normed = projection_of(model, few);
            normed.norm = true;
            return Product(runtime, normed, kinds_of(weights, &LayerWeights::qkv));
        });
        add(Part::output, whole.output, [&, back, few] {
            Linear added = back;
            added.max_tokens = few;
            added.residual = true;
            return Product(runtime, added, kinds_of(weights, &LayerWeights::output));
        });
        add(Part::network, whole.network,
            [&, few] { return Network(runtime, model, few, kinds_of_networks(weights), false, true); });
    }
    if (model.has_experts()) {
        add({}, experts.router, [&, tokens] {
            return Product(runtime,
                           {.in = m.hidden_size, .out = m.experts, .max_tokens = tokens, .dtype = m.dtype},
                           kinds_of(weights, &LayerWeights::router));
        });
        add({}, experts.routing, [&, tokens] { return prepared_routing(runtime, m, tokens); });
        add(Part::network, experts.up, [&, tokens] {
            return ExpertProduct(runtime, experts_up(model, tokens), kinds_of_networks(weights, true));
        });
        add(Part::network, experts.down, [&, tokens] {
            return ExpertProduct(runtime, experts_down(model, tokens), kinds_of_networks(weights, true));
        });
    }
    add(Part::head, head, [&] {
        return Product(runtime,
                       {.in = m.hidden_size,
                        .out = m.vocab_size,
                        .max_tokens = capacity.sequences,
                        .dtype = m.dtype,
                        .bias = m.head_bias},
                       {.numbers = !weights.head.is_coded,
                        .codes = weights.head.is_coded,
                        .format = weights.code_format});
    });
    add({}, embedding, [&, tokens] { return prepared_embedding(runtime, m, tokens); });
    add({}, rows, [&] { return prepared_rows(runtime, m, m.hidden_size, capacity.sequences); });
    add({}, attended_rows, [&] { return prepared_rows(runtime, m, model.q_width(), capacity.sequences); });
    add({}, first_norm, [&, tokens] { return prepared_norm(runtime, model, tokens, false); });
    add(codes ? std::nullopt : std::optional(Part::network_norm), norm,
        [&, tokens] { return prepared_norm(runtime, model, tokens, true); });
    if (codes) {
        add({}, first_coded_norm,
            [&, tokens, norms] { return prepared_norm(runtime, model, tokens, false, norms); });
        add(Part::network_norm, coded_norm,
            [&, tokens, norms] { return prepared_norm(runtime, model, tokens, true, norms); });
    }
    add(Part::append, append,
        [&] { return prepared_append(runtime, m, capacity, capacity.sequences, false); });
    add({}, append_anyhow, [&, tokens] { return prepared_append(runtime, m, capacity, tokens, true); });
    add({}, sample, [&] { return prepared_sample(runtime, m, capacity.sequences, false); });
    add({}, filtered_sample, [&] { return prepared_sample(runtime, m, capacity.sequences, true); });
    return all;
}

}  // namespace hone::decoder
