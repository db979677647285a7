#include "models/step_operators.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace hone::models {
namespace {

constexpr double most_cap = 65536;  ///< Sample::softcap

bool has_chunks(const Model& model) {
    return layers_that(model, [](const LayerKind& kind) { return kind.chunk > 0; }) > 0;
}

/// One weight for all heads, within the rotation's kernel.
bool has_shared_head_norms(const Model& model) {
    return model.qk_norm && model.head_norm == HeadNorm::shared;
}

RopeStyle style_of(const Model& model) {
    return model.interleaved_rotary ? RopeStyle::interleaved : RopeStyle::half;
}

hone::Attention attention(const Model& model, const StepRoom& room, std::int64_t window) {
    return {.heads = model.num_attention_heads,
            .kv_heads = model.num_key_value_heads,
            .head_dim = model.head_dim,
            .max_batch = room.sequences,
            .max_kv_len = room.context,
            .dtype = model.dtype,
            .kv_dtype = room.kv_dtype,
            .softcap = model.softcap > 0,
            .window = window,
            .page_size = room.page_size,
            .sinks = model.sinks};
}

Activation known_activation(const Model& model) {
    if (const std::optional<Activation> known = activation_of(model)) return *known;
    throw std::invalid_argument(fmt::format("activation {}: no operator knows it", model.activation));
}

ExpertLinear experts(const Model& model, std::int64_t tokens) {
    return {.experts = model.experts,
            .top_k = model.experts_per_token,
            .max_tokens = tokens,
            .dtype = model.dtype,
            .bias = model.expert_bias};
}

}  // namespace

std::vector<std::string> lacking_in_steps(const Model& model) {
    std::vector<std::string> lacks;
    const auto lack = [&](bool has, const char* what) {
        if (has) lacks.emplace_back(what);
    };
    lack(model.encoder, "attention without a mask, as encoders have it");
    lack(model.norms == NormPlaces::after_sum, "norms elsewhere than in front");
    lack(model.parallel && (model.norms != NormPlaces::before || model.experts > 1),
         "parallel blocks with norms elsewhere than in front, or with experts");
    lack(has_chunks(model), "attention in chunks");
    lack(model.latent_attention, "latent attention");
    lack(model.alibi, "ALiBi");
    lack(model.clipped_qkv, "clipped queries and keys");
    lack(model.scaled_queries, "queries scaled by position");
    lack(model.qk_norm && model.norm != "rmsnorm", "a norm of queries and keys that subtracts a mean");
    lack(model.qk_norm && model.head_norm == HeadNorm::own,
         "a norm of queries and keys with weights of its own in each head");
    lack(model.embedding_norm, "a norm or scale of embeddings");
    lack(model.logit_cap > most_cap || model.logit_cap != std::floor(model.logit_cap),
         "a cap of logits that is no whole number up to 65536");
    lack(model.gated_ffn && model.ffn_bias, "biases of a gated feed-forward network");
    lack(!model.final_norm || !model.first_norm, "a model without its first or last norm");
    lack(!model.has_head, "a model without a language head");
    lack(model.rotary_dim == 0 && !model.learned_positions, "attention without positions");
    return lacks;
}

std::vector<std::string> lacking_of_experts(const Model& model) {
    std::vector<std::string> lacks;
    if (model.experts <= 1) return lacks;
    if (!model.softmax_routing || model.experts_per_token == 0)
        lacks.emplace_back("experts that are not chosen by a softmax over all of them");
    if (model.shared_width > 0) lacks.emplace_back("an expert that sees all tokens");
    if (model.own_expert_network || !model.gated_ffn)
        lacks.emplace_back("experts that are no gated networks");
    return lacks;
}

std::int64_t q_width(const Model& model) { return model.num_attention_heads * model.head_dim; }
std::int64_t kv_width(const Model& model) { return model.num_key_value_heads * model.head_dim; }
std::int64_t qkv_width(const Model& model) { return q_width(model) + 2 * kv_width(model); }
std::int64_t expert_width(const Model& model) {
    return model.expert_width > 0 ? model.expert_width : model.intermediate_size;
}

std::optional<Activation> activation_of(const Model& model) {
    for (const Activation known :
         {Activation::silu, Activation::gelu_tanh, Activation::gelu_erf, Activation::relu}) {
        if (model.activation == activation_names[static_cast<std::size_t>(known)]) return known;
    }
    return std::nullopt;
}

Activation activation_of_experts(const Model& model) {
    constexpr Activation own = Activation::swiglu_oai;
    return model.expert_activation == activation_names[static_cast<std::size_t>(own)]
               ? own
               : known_activation(model);
}

bool has_norms_in_front(const Model& model) { return model.norms != NormPlaces::behind; }

bool has_wide_head_norms(const Model& model) {
    return model.qk_norm && model.head_norm == HeadNorm::all_heads;
}

std::vector<std::int64_t> windows_of(const Model& model) {
    std::vector<std::int64_t> windows;
    for (const LayerGroup& group : layer_groups(model)) {
        if (std::ranges::find(windows, group.kind.window) == windows.end())
            windows.push_back(group.kind.window);
    }
    return windows;
}

Embedding token_look_up(const Model& model, std::int64_t tokens) {
    return {.hidden = model.hidden_size,
            .max_tokens = tokens,
            .dtype = model.dtype,
            .scale = model.embedding_scale,
            .positions = model.learned_positions};
}

Embedding row_look_up(const Model& model, std::int64_t width, std::int64_t rows) {
    return {.hidden = width, .max_tokens = rows, .dtype = model.dtype};
}

Embedding drawn_look_up(std::int64_t rows) { return {.hidden = 1, .max_tokens = rows, .dtype = Dtype::fp32}; }

std::variant<RmsNorm, LayerNorm> stream_norm(const Model& model, std::int64_t rows, bool residual,
                                             NormOutput output) {
    if (model.norm == "rmsnorm") {
        return RmsNorm{.hidden = model.hidden_size,
                       .max_rows = rows,
                       .dtype = model.dtype,
                       .output = output,
                       .residual = residual,
                       .unit_offset = model.norm_unit_offset};
    }
    return LayerNorm{.hidden = model.hidden_size,
                     .max_rows = rows,
                     .dtype = model.dtype,
                     .output = output,
                     .residual = residual,
                     .bias = model.norm_bias,
                     .unit_offset = model.norm_unit_offset};
}

RmsNorm wide_head_norm(const Model& model, std::int64_t width, std::int64_t rows) {
    return {.hidden = width, .max_rows = rows, .dtype = model.dtype, .unit_offset = model.norm_unit_offset};
}

NormOutput norm_output(const Model& model, const checkpoints::WeightFormat& format) {
    if (!has_norms_in_front(model) || model.parallel || model.experts > 1 || !format.format ||
        format.group != 0)
        return NormOutput::same;
    switch (*format.format) {
        case QuantFormat::w8a8: return NormOutput::int8;
        case QuantFormat::fp8: return NormOutput::fp8;
        default: return NormOutput::same;
    }
}

RopeKvAppend cache_append(const Model& model, const StepRoom& room, std::int64_t tokens, bool slots) {
    return {.heads = model.num_attention_heads,
            .kv_heads = model.num_key_value_heads,
            .head_dim = model.head_dim,
            .rotary_dim = model.rotary_dim,
            .max_tokens = tokens,
            .dtype = model.dtype,
            .kv_dtype = room.kv_dtype,
            .style = style_of(model),
            .norm = has_shared_head_norms(model),
            .slots = slots,
            .page_size = room.page_size,
            .unit_offset = has_shared_head_norms(model) && model.norm_unit_offset};
}

hone::Attention single_attention(const Model& model, const StepRoom& room, std::int64_t window) {
    hone::Attention single = attention(model, room, window);
    single.max_q_len = 1;
    single.causal = window > 0;  // a single query sees all keys
    single.lengths = true;
    return single;
}

hone::Attention packed_attention(const Model& model, const StepRoom& room, std::int64_t window) {
    hone::Attention packed = attention(model, room, window);
    packed.max_q_len = std::min(room.tokens, room.context);
    packed.packed = true;
    return packed;
}

std::optional<AttentionAppend> appending_attention(const Model& model, const StepRoom& room,
                                                   std::int64_t window) {
    if (room.kv_dtype != KvDtype::same || has_wide_head_norms(model) || model.sinks) return std::nullopt;
    return AttentionAppend{.heads = model.num_attention_heads,
                           .kv_heads = model.num_key_value_heads,
                           .head_dim = model.head_dim,
                           .rotary_dim = model.rotary_dim,
                           .max_batch = room.sequences,
                           .max_kv_len = room.context,
                           .dtype = model.dtype,
                           .style = style_of(model),
                           .norm = has_shared_head_norms(model),
                           .softcap = model.softcap > 0,
                           .window = window,
                           .page_size = room.page_size,
                           .unit_offset = has_shared_head_norms(model) && model.norm_unit_offset};
}

Linear qkv_projection(const Model& model, std::int64_t tokens, NormsAndSums norm) {
    return {.in = model.hidden_size,
            .out = qkv_width(model),
            .max_tokens = tokens,
            .dtype = model.dtype,
            .bias = model.qkv_bias,
            .norm = norm == NormsAndSums::within};
}

Linear attention_output(const Model& model, std::int64_t tokens, NormsAndSums sum) {
    return {.in = q_width(model),
            .out = model.hidden_size,
            .max_tokens = tokens,
            .dtype = model.dtype,
            .bias = model.output_bias,
            .residual = sum == NormsAndSums::within};
}

FusedFfn feed_forward(const Model& model, std::int64_t tokens, NormsAndSums both) {
    return {.hidden = model.hidden_size,
            .intermediate = model.intermediate_size,
            .max_tokens = tokens,
            .dtype = model.dtype,
            .activation = known_activation(model),
            .gated = model.gated_ffn,
            .bias = model.ffn_bias,
            .residual = both == NormsAndSums::within || model.parallel,
            .norm = both == NormsAndSums::within};
}

Linear language_head(const Model& model, std::int64_t rows) {
    return {.in = model.hidden_size,
            .out = model.vocab_size,
            .max_tokens = rows,
            .dtype = model.dtype,
            .bias = model.head_bias};
}

std::int64_t most_whole_sequences(const Model& model, const checkpoints::WeightFormat& format) {
    if (model.norms != NormPlaces::before || model.norm != "rmsnorm" || model.norm_unit_offset ||
        model.parallel || model.experts > 1)
        return 0;
    if (!format.format) return 1;
    return is_packed(*format.format) ? 2 : 0;
}

Linear router(const Model& model, std::int64_t tokens) {
    return {.in = model.hidden_size,
            .out = model.experts,
            .max_tokens = tokens,
            .dtype = model.dtype,
            .bias = model.router_bias};
}

ExpertRouting expert_routing(const Model& model, std::int64_t tokens) {
    return {.experts = model.experts,
            .top_k = model.experts_per_token,
            .max_tokens = tokens,
            .dtype = model.dtype,
            .renormalize = model.renormalized_routing};
}

ExpertLinear experts_up(const Model& model, std::int64_t tokens) {
    ExpertLinear up = experts(model, tokens);
    up.in = model.hidden_size;
    up.out = expert_width(model);
    up.activation = activation_of_experts(model);
    up.gated = true;
    up.gather = true;
    return up;
}

ExpertLinear experts_down(const Model& model, std::int64_t tokens) {
    ExpertLinear down = experts(model, tokens);
    down.in = expert_width(model);
    down.out = model.hidden_size;
    down.combine = true;
    return down;
}

QuantizedLinear with_codes(const Linear& linear, const checkpoints::WeightFormat& format, bool quantized_x) {
    return {.in = linear.in,
            .out = linear.out,
            .max_tokens = linear.max_tokens,
            .dtype = linear.dtype,
            .format = *format.format,
            .group = format.group,
            .zeros = format.zeros,
            .quantized_x = quantized_x,
            .activation = linear.activation,
            .bias = linear.bias,
            .residual = linear.residual,
            .norm = linear.norm};
}

QuantizedFfn with_codes(const FusedFfn& network, const checkpoints::WeightFormat& format, bool quantized_x) {
    return {.hidden = network.hidden,
            .intermediate = network.intermediate,
            .max_tokens = network.max_tokens,
            .dtype = network.dtype,
            .format = *format.format,
            .group = format.group,
            .zeros = format.zeros,
            .quantized_x = quantized_x,
            .activation = network.activation,
            .gated = network.gated,
            .bias = network.bias,
            .residual = network.residual,
            .norm = network.norm};
}

QuantizedExpertLinear with_codes(const ExpertLinear& linear, const checkpoints::WeightFormat& format) {
    return {.in = linear.in,
            .out = linear.out,
            .experts = linear.experts,
            .top_k = linear.top_k,
            .max_tokens = linear.max_tokens,
            .dtype = linear.dtype,
            .format = *format.format,
            .group = format.group,
            .zeros = format.zeros,
            .activation = linear.activation,
            .gated = linear.gated,
            .bias = linear.bias,
            .gather = linear.gather,
            .combine = linear.combine};
}

Sample drawing(const Model& model, std::int64_t rows, bool filters) {
    return {.vocabulary = model.vocab_size,
            .max_rows = rows,
            .dtype = model.dtype,
            .filters = filters,
            .softcap = static_cast<std::int64_t>(model.logit_cap)};
}

}  // namespace hone::models
