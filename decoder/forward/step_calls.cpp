// What a step enqueues, part by part: through the layers, and the model's two ends. Attention and layers of
// experts have files of their own.
#include "decoder/forward/step_calls.h"

#include <fmt/format.h>

#include "decoder/error.h"
#include "decoder/forward/forward_memory.h"

namespace hone::decoder {

void StepCalls::require(Status status, const char* what) const {
    if (status == Status::ok) return;
    if (status == Status::launch_failed)
        throw Error(fmt::format("{}: {}", what, runtime_.last_launch_error()), "",
                    "hone doctor checks driver and GPUs");
    const char* hint = status == Status::capturing ? ": the decoder runs without HONE_CHECK_INDICES" : "";
    throw DecoderError(fmt::format("{}: {}{}", what, describe(status), hint));
}

void StepCalls::enqueue_layers(const ForwardStep& step) const {
    enqueue_first_layers(step, model_.model.num_hidden_layers);
    enqueue(Part::last_norm, 0, step);
}

void StepCalls::enqueue_prompts(const ForwardStep& step, std::int64_t rows) const {
    if (step.scores) return enqueue_layers(step);
    const std::int64_t last = model_.model.num_hidden_layers - 1;
    enqueue_first_layers(step, last);
    enqueue_keys(last, step);
    if (rows == 0) return;
    enqueue(Part::attention, last, step);
    ForwardStep drawn = step;
    drawn.tokens = rows;
    drawn.drawn_rows = true;
    enqueue_drawn_rows(drawn);
    enqueue_behind_attention(last, drawn);
    enqueue(Part::last_norm, 0, drawn);
}

void StepCalls::enqueue_draws(const ForwardStep& step) const {
    if (step.scores) {
        enqueue_logits(step.in(), step.sequences);
    } else {
        enqueue(Part::head, 0, step);
    }
    enqueue(Part::sampling, 0, step);
}

void StepCalls::enqueue_whole(const ForwardStep& step) const {
    enqueue_layers(step);
    enqueue_draws(step);
}

void StepCalls::enqueue_logits(const StepInputs::Arrays& in, std::int64_t rows) const {
    enqueue_rows(operators_.rows, in, memory_.normed, memory_.drawn_x, rows);
    enqueue_head(memory_.drawn_x.data(), rows);
}

void StepCalls::enqueue_first_layers(const ForwardStep& step, std::int64_t layers) const {
    enqueue(Part::embedding, 0, step);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        enqueue_keys(layer, step);
        enqueue(Part::attention, layer, step);
        enqueue_behind_attention(layer, step);
    }
}

void StepCalls::enqueue_keys(std::int64_t layer, const ForwardStep& step) const {
    enqueue(Part::attention_norm, layer, step);
    enqueue(Part::qkv, layer, step);
    enqueue(Part::head_norms, layer, step);
    enqueue(Part::append, layer, step);
}

void StepCalls::enqueue_behind_attention(std::int64_t layer, const ForwardStep& step) const {
    enqueue(Part::output, layer, step);
    enqueue(Part::behind_attention, layer, step);
    enqueue(Part::network_norm, layer, step);
    if (model_.has_experts(layer)) enqueue(Part::routing, layer, step);
    enqueue(Part::network, layer, step);
    enqueue(Part::behind_network, layer, step);
}

void StepCalls::enqueue(Part part, std::int64_t layer, const ForwardStep& step) const {
    if (has(part, step) && part != step.without) enqueue_part(part, layer, step);
}

/// What attention has left, the residual stream and what the network takes, of rows that tokens are drawn
/// from.
void StepCalls::enqueue_drawn_rows(const ForwardStep& step) const {
    enqueue_rows(operators_.attended_rows, step.in(), memory_.attended, memory_.drawn_attended, step.tokens);
    enqueue_rows(operators_.rows, step.in(), memory_.x, memory_.drawn_x, step.tokens);
    if (model_.has_one_norm())
        enqueue_rows(operators_.rows, step.in(), memory_.normed, memory_.drawn_normed, step.tokens);
}

void StepCalls::enqueue_awaited(const ForwardStep& step) const {
    if (step.singles() == 0) return;
    const std::span<std::int32_t> drawn = memory_.drawn.of(turn_before(step.turn));
    const EmbeddingArgs args{.ids = step.in().awaited,
                             .table = drawn.data(),
                             .out = step.in().ids,
                             .vocabulary = std::ssize(drawn)};
    require(operators_.drawn_tokens.run(gpu_.stream(), args, step.singles()), "tokens of the step before");
}

void StepCalls::enqueue_rows(const EmbeddingKernel& kernel, const StepInputs::Arrays& in, const Bytes& from,
                             const Bytes& to, std::int64_t rows) const {
    const EmbeddingArgs args{
        .ids = in.last_rows, .table = from.data(), .out = to.data(), .vocabulary = capacity_.step_tokens};
    require(kernel.run(gpu_.stream(), args, rows), "rows that tokens are drawn from");
}

/// Whether its products have norms and sums in them.
bool StepCalls::is_whole(const ForwardStep& step) const {
    return step.one_each && operators_.are_whole(step.tokens);
}

/// Whether its products share its norms, behind the first.
bool StepCalls::shares_norms(const ForwardStep& step) const {
    return step.one_each && operators_.share_norms(step.tokens);
}

const LayerProducts& StepCalls::products_of(const ForwardStep& step) const {
    return is_whole(step) ? operators_.whole : operators_.plain;
}

bool StepCalls::has(Part part, const ForwardStep& step) const {
    switch (part) {
        case Part::attention_norm: return !is_whole(step);
        case Part::network_norm: return !model_.has_one_norm() && !is_whole(step) && !shares_norms(step);
        case Part::append: return !(step.one_each && operators_.appends_in_attention());
        case Part::head_norms: return model_.has_wide_head_norms();
        case Part::behind_attention:
        case Part::behind_network: return model_.has_norms_behind();
        case Part::routing: return model_.has_experts();
        default: return true;
    }
}

void StepCalls::enqueue_part(Part part, std::int64_t number, const ForwardStep& step) const {
    const LayerWeights& layer = weights_.layers[elements(number)];
    switch (part) {
        case Part::embedding: enqueue_embedding(step); return;
        case Part::attention_norm:
            if (number == 0 || !shares_norms(step))
                enqueue_norm_in_front(layer.attention_norm, number > 0, step);
            return;
        case Part::qkv:
            if (number > 0 && shares_norms(step)) return enqueue_sharing_qkv(layer, step);
            return enqueue_qkv(layer, step);
        case Part::head_norms: enqueue_head_norms(layer, step); return;
        case Part::append: enqueue_append(number, step); return;
        case Part::attention: enqueue_attention(number, step); return;
        case Part::output:
            if (shares_norms(step)) return enqueue_sharing_output(layer, step);
            return enqueue_output(layer, step);
        case Part::behind_attention: enqueue_norm_behind(layer.behind_attention, step); return;
        case Part::network_norm:
            enqueue_norm_in_front(layer.network_norm, !model_.model.parallel, step);
            return;
        case Part::routing: enqueue_routing(layer, step); return;
        case Part::network:
            if (shares_norms(step)) return enqueue_sharing_network(number, step);
            layer.has_experts() ? enqueue_experts(layer, step) : enqueue_network(layer, step);
            return;
        case Part::behind_network: enqueue_norm_behind(layer.behind_network, step); return;
        case Part::last_norm: enqueue_last_norm(step); return;
        case Part::head: enqueue_head(memory_.normed.data(), step.sequences); return;
        case Part::sampling: enqueue_sample(step); return;
    }
}

void StepCalls::enqueue_embedding(const ForwardStep& step) const {
    const models::Model& m = model_.model;
    const StepInputs::Arrays& in = step.in();
    const EmbeddingArgs embedding{
        .ids = step.embeds_in_place() ? memory_.drawn.of(turn_before(step.turn)).data() : in.ids,
        .table = weights_.embedding,
        .position_ids = in.positions,
        .position_table = weights_.positions,
        .out = memory_.x.data(),
        .vocabulary = m.vocab_size,
        .position_rows = m.max_position_embeddings,
        .scale = model_.embedding_scale()};
    require(operators_.embedding.run(gpu_.stream(), embedding, step.tokens), "embedding");
}

std::byte* StepCalls::stream_of(const ForwardStep& step) const {
    return step.drawn_rows ? memory_.drawn_x.data() : memory_.x.data();
}

/// What attention and network multiply.
const void* StepCalls::product_input(const ForwardStep& step) const {
    if (!model_.has_norms_in_front()) return stream_of(step);
    const bool is_gathered = step.drawn_rows && model_.has_one_norm();
    return is_gathered ? memory_.drawn_normed.data() : memory_.normed.data();
}

/// Arguments of a norm of the residual stream, to which `delta` has to be added first where it is a sum's.
NormArgs StepCalls::norm_args(const NormWeight& weight, bool of_sum, const ForwardStep& step) const {
    std::byte* const x = stream_of(step);
    return {.x = of_sum ? memory_.delta.data() : x,
            .residual = x,
            .weight = weight.weight,
            .bias = weight.bias,
            .out = memory_.normed.data(),
            .sum = x,
            .scale = memory_.normed_scales.data(),
            .epsilon = model_.stream_epsilon()};
}

void StepCalls::enqueue_norm(const NormWeight& weight, bool of_sum, const ForwardStep& step) const {
    const NormKernel& kernel = of_sum ? operators_.norm : operators_.first_norm;
    require(kernel.run(gpu_.stream(), norm_args(weight, of_sum, step), step.tokens), "norm");
}

/// Of the residual stream, to which products have added their results where they hold the sums.
void StepCalls::enqueue_last_norm(const ForwardStep& step) const {
    enqueue_norm(weights_.final_norm, !is_whole(step) && !shares_norms(step), step);
}

/// The norm whose results a product takes, as numbers or as codes with scales. Where models have none, the
/// sum alone, which is that of a norm whose results nobody reads.
void StepCalls::enqueue_norm_in_front(const NormWeight& weight, bool of_sum, const ForwardStep& step) const {
    if (!model_.has_norms_in_front()) {
        if (of_sum) enqueue_norm(weights_.final_norm, true, step);
        return;
    }
    if (!operators_.norms_write_codes) return enqueue_norm(weight, of_sum, step);
    const NormKernel& kernel = of_sum ? operators_.coded_norm : operators_.first_coded_norm;
    require(kernel.run(gpu_.stream(), norm_args(weight, of_sum, step), step.tokens), "norm");
}

void StepCalls::enqueue_qkv(const LayerWeights& layer, const ForwardStep& step) const {
    LinearArgs args{.x = product_input(step),
                    .bias = layer.qkv_bias,
                    .out = memory_.qkv.data(),
                    .workspace = memory_.workspace.data()};
    if (is_whole(step)) {
        args.x = stream_of(step);
        args.norm_weight = layer.attention_norm.weight;
        args.epsilon = model_.stream_epsilon();
    }
    const Product& qkv = products_of(step).qkv;
    require(qkv.run(gpu_.stream(), layer.qkv, args, step.tokens, memory_.normed_scales.data()),
            "projection of queries, keys and values");
}

/// What products that share norms are given, all of them: the residual stream in place, and between them, in
/// place of what norms write, its rows times the next norm's weight, with their squares.
SharedNormArgs StepCalls::sharing_args(const ForwardStep& step) const {
    std::byte* const x = stream_of(step);
    return {.x = memory_.normed.data(),
            .residual = x,
            .out = x,
            .norm_squares = memory_.squares.data(),
            .epsilon = model_.stream_epsilon(),
            .scaled = memory_.normed.data(),
            .squares = memory_.squares.data(),
            .workspace = memory_.workspace.data()};
}

void StepCalls::enqueue_sharing_qkv(const LayerWeights& layer, const ForwardStep& step) const {
    SharedNormArgs args = sharing_args(step);
    args.weight = &layer.qkv;
    args.bias = layer.qkv_bias;
    args.out = memory_.qkv.data();
    require(operators_.sharing.qkv.run(gpu_.stream(), args, step.tokens),
            "projection of queries, keys and values");
}

void StepCalls::enqueue_sharing_output(const LayerWeights& layer, const ForwardStep& step) const {
    SharedNormArgs args = sharing_args(step);
    args.x = memory_.attended.data();
    args.weight = &layer.output;
    args.bias = layer.output_bias;
    args.next_weight = layer.network_norm.weight;
    require(operators_.sharing.output.run(gpu_.stream(), args, step.tokens), "projection of attention");
}

/// What the last layer leaves for a norm nobody reads: its own has a launch.
void StepCalls::enqueue_sharing_network(std::int64_t number, const ForwardStep& step) const {
    const bool is_last = number + 1 == model_.model.num_hidden_layers;
    SharedNormArgs args = sharing_args(step);
    args.next_weight =
        is_last ? weights_.final_norm.weight : weights_.layers[elements(number + 1)].attention_norm.weight;
    require(operators_.sharing.run_network(gpu_.stream(), model_.model, weights_.layers[elements(number)],
                                           args, step.tokens),
            "feed-forward network");
}

/// Queries, and keys, of all heads of a token as one row, where they are.
void StepCalls::enqueue_head_norms(const LayerWeights& layer, const ForwardStep& step) const {
    const std::int64_t stride = model_.qkv_width();
    const auto normalize = [&](const NormKernel& kernel, const void* weight, std::byte* rows) {
        const NormArgs args{.x = rows,
                            .weight = weight,
                            .out = rows,
                            .x_stride = stride,
                            .out_stride = stride,
                            .epsilon = static_cast<float>(model_.model.norm_epsilon)};
        require(kernel.run(gpu_.stream(), args, step.tokens), "norm of all heads");
    };
    std::byte* const q = memory_.qkv.data();
    normalize(operators_.query_norm, layer.q_norm, q);
    normalize(operators_.key_norm, layer.k_norm, q + model_.q_width() * model_.element_bytes());
}

void StepCalls::enqueue_output(const LayerWeights& layer, const ForwardStep& step) const {
    const Bytes& attended = step.drawn_rows ? memory_.drawn_attended : memory_.attended;
    LinearArgs args{.x = attended.data(),
                    .bias = layer.output_bias,
                    .out = memory_.delta.data(),
                    .workspace = memory_.workspace.data()};
    if (is_whole(step)) args.residual = args.out = stream_of(step);
    const Product& output = products_of(step).output;
    require(output.run(gpu_.stream(), layer.output, args, step.tokens), "projection of attention");
}

void StepCalls::enqueue_network(const LayerWeights& layer, const ForwardStep& step) const {
    FusedFfnArgs args{
        .x = product_input(step), .out = memory_.delta.data(), .workspace = memory_.workspace.data()};
    if (model_.model.parallel) args.residual = memory_.delta.data();  // what attention's output left
    if (is_whole(step)) {
        args.x = args.residual = args.out = stream_of(step);
        args.norm_weight = layer.network_norm.weight;
        args.epsilon = model_.stream_epsilon();
    }
    const Network& network = products_of(step).network;
    require(network.run(gpu_.stream(), layer, args, step.tokens, memory_.normed_scales.data()),
            "feed-forward network");
}

void StepCalls::enqueue_norm_behind(const NormWeight& weight, const ForwardStep& step) const {
    const NormArgs behind{.x = memory_.delta.data(),
                          .weight = weight.weight,
                          .bias = weight.bias,
                          .out = memory_.delta.data(),
                          .epsilon = static_cast<float>(model_.model.norm_epsilon)};
    require(operators_.first_norm.run(gpu_.stream(), behind, step.tokens), "norm");
}

void StepCalls::enqueue_head(const void* x, std::int64_t rows) const {
    const LinearArgs args{.x = x,
                          .bias = weights_.head_bias,
                          .out = memory_.logits.data(),
                          .workspace = memory_.workspace.data()};
    require(operators_.head.run(gpu_.stream(), weights_.head, args, rows), "language head");
}

void StepCalls::enqueue_sample(const ForwardStep& step) const {
    const StepInputs::Arrays& in = step.in();
    const SampleArgs args{.logits = memory_.logits.data(),
                          .temperature = in.temperature,
                          .top_k = in.top_k,
                          .top_p = in.top_p,
                          .min_p = in.min_p,
                          .seed = in.seed,
                          .counter = in.counter,
                          .out = memory_.drawn.of(step.turn).data()};
    const SampleKernel& kernel = step.filters ? operators_.filtered_sample : operators_.sample;
    require(kernel.run(gpu_.stream(), args, step.sequences), "sampling");
}

}  // namespace hone::decoder
