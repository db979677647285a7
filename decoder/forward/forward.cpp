#include "decoder/forward/forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "decoder/error.h"
#include "decoder/forward/forward_memory.h"
#include "decoder/gpu/pause.h"

namespace hone::decoder {

namespace {

/// Sequences that a graph is made for: a step takes the next one that has room.
constexpr std::int64_t graph_sizes[] = {1,   2,   4,   8,   16,  24,  32,  48,  64,  96,  128, 160,
                                        192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024};
/// Sequences up to which steps are launched ahead, with graphs for each turn. What launching takes is nothing
/// beside larger steps.
constexpr std::int64_t most_ahead = 64;
/// In place of a token that is not there yet.
constexpr std::int32_t not_drawn = -1;
/// How often a wait looks for tokens until it asks the driver whether the step has failed, and what time it
/// is.
constexpr int looks_between_questions = 1000;
constexpr int looks_between_clocks = 50;
/// Lengths that a graph's attention is chosen for: this one, and each as many times as long as the one
/// before. It reads what is there, whatever its graph's length is.
constexpr std::int64_t least_graph_length = 1024;
constexpr std::int64_t graph_length_step = 4;

}  // namespace

std::int64_t graph_length(std::int64_t kv_len) {
    std::int64_t length = least_graph_length;
    while (length < kv_len) length *= graph_length_step;
    return length;
}

void Forward::require(Status status, const char* what) const {
    if (status == Status::ok) return;
    if (status == Status::launch_failed)
        throw Error(fmt::format("{}: {}", what, runtime_.last_launch_error()), "",
                    "hone doctor checks driver and GPUs");
    const char* hint = status == Status::capturing ? ": the decoder runs without HONE_CHECK_INDICES" : "";
    throw DecoderError(fmt::format("{}: {}{}", what, describe(status), hint));
}

Forward::Forward(const Gpu& gpu, Runtime& runtime, const Description& model, const ModelWeights& weights,
                 const Capacity& capacity)
    : gpu_(gpu),
      runtime_(runtime),
      model_(model),
      weights_(weights),
      capacity_(capacity),
      operators_(runtime, model, weights, capacity),
      small_(gpu, capacity.sequences, capacity.sequences, capacity.pages_a_sequence(), turns),
      large_(gpu, capacity.step_tokens, capacity.sequences, capacity.pages_a_sequence()) {
    under_way_.reserve(2);
    memory_ = std::make_unique<Memory>(gpu, model, weights, capacity, workspace_bytes(operators_));
    capture_graphs();
}

Forward::~Forward() = default;

std::int64_t Forward::workspace_bytes(const Operators& operators) const {
    const std::int64_t tokens = capacity_.step_tokens;
    const std::int64_t sequences = capacity_.sequences;
    const std::int64_t queries = std::min(tokens, capacity_.context);
    std::int64_t workspace =
        std::max({operators.plain.workspace_bytes(tokens), operators.experts.workspace_bytes(tokens),
                  operators.head.workspace_bytes(sequences)});
    if (!operators.whole_steps.empty())
        workspace = std::max(workspace, operators.whole.workspace_bytes(operators.whole_steps.back()));
    if (!operators.sharing_steps.empty())
        workspace = std::max(workspace,
                             operators.sharing.workspace_bytes(model_.model, operators.sharing_steps.back()));
    for (const AttentionKernel& kernel : operators.one_query)
        workspace = std::max(workspace, kernel.workspace_bytes({sequences, 1, capacity_.context}));
    for (const AttentionAppendKernel& kernel : operators.appending) {
        if (kernel) workspace = std::max(workspace, kernel.workspace_bytes({sequences, capacity_.context}));
    }
    for (const AttentionKernel& kernel : operators.any_queries)
        workspace = std::max(workspace, kernel.workspace_bytes({sequences, queries, capacity_.context}));
    return workspace;
}

Forward::Step Forward::step_of_one_each(const StepInputs& inputs, std::int64_t sequences, std::int64_t kv_len,
                                        std::size_t turn) {
    return {.inputs = inputs,
            .tokens = sequences,
            .sequences = sequences,
            .kv_len = kv_len,
            .one_each = true,
            .longest = 1,
            .without = {},
            .turn = turn};
}

void Forward::enqueue_layers(const Step& step) {
    enqueue_first_layers(step, model_.model.num_hidden_layers);
    enqueue(Part::last_norm, 0, step);
}

/// As enqueue_layers(), but that behind the last layer's keys and values only rows count that tokens are
/// drawn from: what else this layer makes is for nobody. `rows` of them; 0: none.
void Forward::enqueue_prompts(const Step& step, std::int64_t rows) {
    const std::int64_t last = model_.model.num_hidden_layers - 1;
    enqueue_first_layers(step, last);
    enqueue_keys(last, step);
    if (rows == 0) return;
    enqueue(Part::attention, last, step);
    Step drawn = step;
    drawn.tokens = rows;
    drawn.drawn_rows = true;
    enqueue_drawn_rows(drawn);
    enqueue_behind_attention(last, drawn);
    enqueue(Part::last_norm, 0, drawn);
}

void Forward::enqueue_first_layers(const Step& step, std::int64_t layers) {
    enqueue(Part::embedding, 0, step);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        enqueue_keys(layer, step);
        enqueue(Part::attention, layer, step);
        enqueue_behind_attention(layer, step);
    }
}

void Forward::enqueue_keys(std::int64_t layer, const Step& step) {
    enqueue(Part::attention_norm, layer, step);
    enqueue(Part::qkv, layer, step);
    enqueue(Part::head_norms, layer, step);
    enqueue(Part::append, layer, step);
}

void Forward::enqueue_behind_attention(std::int64_t layer, const Step& step) {
    enqueue(Part::output, layer, step);
    enqueue(Part::behind_attention, layer, step);
    enqueue(Part::network_norm, layer, step);
    if (model_.has_experts(layer)) enqueue(Part::routing, layer, step);
    enqueue(Part::network, layer, step);
    enqueue(Part::behind_network, layer, step);
}

void Forward::enqueue(Part part, std::int64_t layer, const Step& step) {
    if (has(part, step) && part != step.without) enqueue_part(part, layer, step);
}

/// What attention has left and the residual stream, of rows that tokens are drawn from.
void Forward::enqueue_drawn_rows(const Step& step) {
    Memory& memory = *memory_;
    enqueue_rows(operators_.attended_rows, step.in(), memory.attended, memory.drawn_attended, step.tokens);
    enqueue_rows(operators_.rows, step.in(), memory.x, memory.drawn_x, step.tokens);
}

void Forward::enqueue_rows(const EmbeddingKernel& kernel, const StepInputs::Arrays& in, const Bytes& from,
                           const Bytes& to, std::int64_t rows) {
    const EmbeddingArgs args{
        .ids = in.last_rows, .table = from.data(), .out = to.data(), .vocabulary = capacity_.step_tokens};
    require(kernel.run(gpu_.stream(), args, rows), "rows that tokens are drawn from");
}

/// Whether its products have norms and sums in them.
bool Forward::is_whole(const Step& step) const { return step.one_each && operators_.are_whole(step.tokens); }

/// Whether its products share its norms, behind the first.
bool Forward::shares_norms(const Step& step) const {
    return step.one_each && operators_.share_norms(step.tokens);
}

const LayerProducts& Forward::products_of(const Step& step) const {
    return is_whole(step) ? operators_.whole : operators_.plain;
}

/// Whether a step has a launch for it.
bool Forward::has(Part part, const Step& step) const {
    switch (part) {
        case Part::attention_norm: return !is_whole(step);
        case Part::network_norm: return !is_whole(step) && !shares_norms(step);
        case Part::append: return !(step.one_each && operators_.appends_in_attention());
        case Part::head_norms: return model_.has_wide_head_norms();
        case Part::behind_attention:
        case Part::behind_network: return model_.has_norms_behind();
        case Part::routing: return model_.has_experts();
        default: return true;
    }
}

void Forward::enqueue_part(Part part, std::int64_t number, const Step& step) {
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
        case Part::network_norm: enqueue_norm_in_front(layer.network_norm, true, step); return;
        case Part::routing: enqueue_routing(layer, step); return;
        case Part::network:
            if (shares_norms(step)) return enqueue_sharing_network(number, step);
            layer.has_experts() ? enqueue_experts(layer, step) : enqueue_network(layer, step);
            return;
        case Part::behind_network: enqueue_norm_behind(layer.behind_network, step); return;
        case Part::last_norm: enqueue_last_norm(step); return;
        case Part::head: enqueue_head(memory_->normed.data(), step.sequences); return;
        case Part::sampling: enqueue_sample(step); return;
    }
}

void Forward::enqueue_embedding(const Step& step) {
    const models::Model& m = model_.model;
    const StepInputs::Arrays& in = step.in();
    const EmbeddingArgs embedding{.ids = step.one_each ? tokens_of(turn_before(step.turn)).data() : in.ids,
                                  .table = weights_.embedding,
                                  .position_ids = in.positions,
                                  .position_table = weights_.positions,
                                  .out = memory_->x.data(),
                                  .vocabulary = m.vocab_size,
                                  .position_rows = m.max_position_embeddings,
                                  .scale = model_.embedding_scale()};
    require(operators_.embedding.run(gpu_.stream(), embedding, step.tokens), "embedding");
}

std::byte* Forward::stream_of(const Step& step) const {
    return step.drawn_rows ? memory_->drawn_x.data() : memory_->x.data();
}

/// What attention and network multiply.
const void* Forward::product_input(const Step& step) const {
    return model_.has_norms_in_front() ? memory_->normed.data() : stream_of(step);
}

/// Arguments of a norm of the residual stream, to which `delta` has to be added first where it is a sum's.
NormArgs Forward::norm_args(const NormWeight& weight, bool of_sum, const Step& step) const {
    std::byte* const x = stream_of(step);
    return {.x = of_sum ? memory_->delta.data() : x,
            .residual = x,
            .weight = weight.weight,
            .bias = weight.bias,
            .out = memory_->normed.data(),
            .sum = x,
            .scale = memory_->normed_scales.data(),
            .epsilon = model_.stream_epsilon()};
}

void Forward::enqueue_norm(const NormWeight& weight, bool of_sum, const Step& step) {
    const NormKernel& kernel = of_sum ? operators_.norm : operators_.first_norm;
    require(kernel.run(gpu_.stream(), norm_args(weight, of_sum, step), step.tokens), "norm");
}

/// Of the residual stream, to which products have added their results where they hold the sums.
void Forward::enqueue_last_norm(const Step& step) {
    enqueue_norm(weights_.final_norm, !is_whole(step) && !shares_norms(step), step);
}

/// The norm whose results a product takes, as numbers or as codes with scales. Where models have none, the
/// sum alone, which is that of a norm whose results nobody reads.
void Forward::enqueue_norm_in_front(const NormWeight& weight, bool of_sum, const Step& step) {
    if (!model_.has_norms_in_front()) {
        if (of_sum) enqueue_norm(weights_.final_norm, true, step);
        return;
    }
    if (!operators_.norms_write_codes) return enqueue_norm(weight, of_sum, step);
    const NormKernel& kernel = of_sum ? operators_.coded_norm : operators_.first_coded_norm;
    require(kernel.run(gpu_.stream(), norm_args(weight, of_sum, step), step.tokens), "norm");
}

void Forward::enqueue_qkv(const LayerWeights& layer, const Step& step) {
    LinearArgs args{.x = product_input(step),
                    .bias = layer.qkv_bias,
                    .out = memory_->qkv.data(),
                    .workspace = memory_->workspace.data()};
    if (is_whole(step)) {
        args.x = stream_of(step);
        args.norm_weight = layer.attention_norm.weight;
        args.epsilon = model_.stream_epsilon();
    }
    const Product& qkv = products_of(step).qkv;
    require(qkv.run(gpu_.stream(), layer.qkv, args, step.tokens, memory_->normed_scales.data()),
            "projection of queries, keys and values");
}

/// What products that share norms are given, all of them: the residual stream in place, and between them, in
/// place of what norms write, its rows times the next norm's weight, with their squares.
SharedNormArgs Forward::sharing_args(const Step& step) const {
    std::byte* const x = stream_of(step);
    return {.x = memory_->normed.data(),
            .residual = x,
            .out = x,
            .norm_squares = memory_->squares.data(),
            .epsilon = model_.stream_epsilon(),
            .scaled = memory_->normed.data(),
            .squares = memory_->squares.data(),
            .workspace = memory_->workspace.data()};
}

void Forward::enqueue_sharing_qkv(const LayerWeights& layer, const Step& step) {
    SharedNormArgs args = sharing_args(step);
    args.weight = &layer.qkv;
    args.bias = layer.qkv_bias;
    args.out = memory_->qkv.data();
    require(operators_.sharing.qkv.run(gpu_.stream(), args, step.tokens),
            "projection of queries, keys and values");
}

void Forward::enqueue_sharing_output(const LayerWeights& layer, const Step& step) {
    SharedNormArgs args = sharing_args(step);
    args.x = memory_->attended.data();
    args.weight = &layer.output;
    args.bias = layer.output_bias;
    args.next_weight = layer.network_norm.weight;
    require(operators_.sharing.output.run(gpu_.stream(), args, step.tokens), "projection of attention");
}

/// What the last layer leaves for a norm nobody reads: its own has a launch.
void Forward::enqueue_sharing_network(std::int64_t number, const Step& step) {
    const bool is_last = number + 1 == model_.model.num_hidden_layers;
    SharedNormArgs args = sharing_args(step);
    args.next_weight =
        is_last ? weights_.final_norm.weight : weights_.layers[elements(number + 1)].attention_norm.weight;
    require(operators_.sharing.run_network(gpu_.stream(), model_.model, weights_.layers[elements(number)],
                                           args, step.tokens),
            "feed-forward network");
}

/// Queries, and keys, of all heads of a token as one row, where they are.
void Forward::enqueue_head_norms(const LayerWeights& layer, const Step& step) {
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
    std::byte* const q = memory_->qkv.data();
    normalize(operators_.query_norm, layer.q_norm, q);
    normalize(operators_.key_norm, layer.k_norm, q + model_.q_width() * model_.element_bytes());
}

void Forward::enqueue_output(const LayerWeights& layer, const Step& step) {
    const Bytes& attended = step.drawn_rows ? memory_->drawn_attended : memory_->attended;
    LinearArgs args{.x = attended.data(),
                    .bias = layer.output_bias,
                    .out = memory_->delta.data(),
                    .workspace = memory_->workspace.data()};
    if (is_whole(step)) args.residual = args.out = stream_of(step);
    const Product& output = products_of(step).output;
    require(output.run(gpu_.stream(), layer.output, args, step.tokens), "projection of attention");
}

void Forward::enqueue_network(const LayerWeights& layer, const Step& step) {
    FusedFfnArgs args{
        .x = product_input(step), .out = memory_->delta.data(), .workspace = memory_->workspace.data()};
    if (is_whole(step)) {
        args.x = args.residual = args.out = stream_of(step);
        args.norm_weight = layer.network_norm.weight;
        args.epsilon = model_.stream_epsilon();
    }
    const Network& network = products_of(step).network;
    require(network.run(gpu_.stream(), layer, args, step.tokens, memory_->normed_scales.data()),
            "feed-forward network");
}

void Forward::enqueue_norm_behind(const NormWeight& weight, const Step& step) {
    const NormArgs behind{.x = memory_->delta.data(),
                          .weight = weight.weight,
                          .bias = weight.bias,
                          .out = memory_->delta.data(),
                          .epsilon = static_cast<float>(model_.model.norm_epsilon)};
    require(operators_.first_norm.run(gpu_.stream(), behind, step.tokens), "norm");
}

void Forward::enqueue_head(const void* x, std::int64_t rows) {
    const LinearArgs args{.x = x,
                          .bias = weights_.head_bias,
                          .out = memory_->logits.data(),
                          .workspace = memory_->workspace.data()};
    require(operators_.head.run(gpu_.stream(), weights_.head, args, rows), "language head");
}

void Forward::enqueue_sample(const Step& step) {
    const StepInputs::Arrays& in = step.in();
    const SampleArgs args{.logits = memory_->logits.data(),
                          .temperature = in.temperature,
                          .top_k = in.top_k,
                          .top_p = in.top_p,
                          .min_p = in.min_p,
                          .seed = in.seed,
                          .counter = in.counter,
                          .out = tokens_of(step.turn).data()};
    const SampleKernel& kernel = step.filters ? operators_.filtered_sample : operators_.sample;
    require(kernel.run(gpu_.stream(), args, step.sequences), "sampling");
}

std::int64_t Forward::padded(std::int64_t sequences) const {
    for (const std::int64_t size : graph_sizes) {
        if (size >= sequences) return std::min(size, capacity_.sequences);
    }
    return capacity_.sequences;
}

std::int64_t Forward::length_bucket(std::int64_t kv_len) const {
    return std::min(graph_length(kv_len), capacity_.context);
}

void Forward::capture_graphs() {
    for (std::int64_t sequences = 1; sequences <= capacity_.sequences; ++sequences) {
        if (padded(sequences) != sequences) continue;
        for (std::int64_t length = 1; length <= capacity_.context; length = length_bucket(length) + 1) {
            for (const bool filters : {false, true}) {
                for (std::size_t turn = 0; turn < (sequences <= most_ahead ? turns : 1); ++turn)
                    static_cast<void>(graph_of(sequences, length, filters, turn));
            }
        }
    }
    gpu_.wait_for_load();
}

const Forward::StepGraph& Forward::graph_of(std::int64_t sequences, std::int64_t kv_len, bool filters,
                                            std::size_t turn) {
    const GraphKind kind{padded(sequences), length_bucket(kv_len), filters, turn};
    StepGraph& step = graphs_[kind];
    if (step.graph) return step;
    step.calls = runtime_.record_graph([&] {
        Step one_each = step_of_one_each(small_, kind.sequences, kind.kv_len, kind.turn);
        one_each.filters = filters;
        step.graph = runtime::instantiate(gpu_.driver(), capture_step(one_each));
    });
    // Else its first launch takes half a millisecond, also where the next step is to be launched in time.
    runtime::check(gpu_.driver(), gpu_.driver().cuGraphUpload(step.graph.get(), gpu_.stream()),
                   "bringing a step's graph to the GPU");
    return step;
}

runtime::Graph Forward::capture_step(const Step& step) {
    return runtime::capture(gpu_.driver(), gpu_.stream(), [&] {
        enqueue_layers(step);
        enqueue(Part::head, 0, step);
        enqueue(Part::sampling, 0, step);
    });
}

/// Filled up to the size of a graph, and of its turn, where there are several.
Forward::Step Forward::step_of_singles(std::span<const StepPart> parts) {
    std::int64_t kv_len = 1;
    for (const StepPart& part : parts) kv_len = std::max<std::int64_t>(kv_len, part.begin + 1);
    const std::int64_t room = padded(std::ssize(parts));
    small_.begin();
    small_.fill_one_each(parts, room);
    return step_of_one_each(small_, room, kv_len, room <= most_ahead ? turn_after(turn_) : 0);
}

Forward::Step Forward::step_of_any(std::span<const StepPart> parts) {
    large_.begin();
    const PackedStep packed = large_.fill(parts, capacity_.page_size);
    return {.inputs = large_,
            .tokens = packed.tokens,
            .sequences = std::ssize(parts),
            .kv_len = packed.kv_len,
            .longest = packed.longest,
            .prompts = packed.prompts,
            .without = {},
            .turn = turn_after(turn_)};
}

void Forward::fill_draws(const StepInputs& inputs, std::span<const Draw> draws) {
    const StepInputs::Arrays& in = inputs.host();
    std::int64_t row = 0;
    for (const Draw& draw : draws) {
        in.temperature[row] = static_cast<float>(draw.wishes.temperature * model_.logit_divisor());
        in.top_k[row] = draw.wishes.top_k;
        in.top_p[row] = draw.wishes.top_p;
        in.min_p[row] = draw.wishes.min_p;
        in.seed[row] = draw.wishes.seed;
        in.counter[row] = draw.counter;
        ++row;
    }
}

void Forward::prepare(std::span<const StepPart> parts, std::span<const Draw> draws) {
    const bool one_each = std::ranges::all_of(
        parts, [](const StepPart& part) { return part.samples && part.tokens.size() == 1; });
    prepared_.emplace(one_each ? step_of_singles(parts) : step_of_any(parts), std::ssize(draws));
    Step& step = prepared_->step;
    step.filters = std::ranges::any_of(draws, [](const Draw& draw) { return draw.wishes.filters(); });
    fill_draws(step.inputs, draws);
    if (!one_each || under_way_.empty() || under_way_.front().turn == step.turn) return;
    for (prepared_->is_in_place = true; const StepPart& part : parts)
        prepared_->is_in_place = prepared_->is_in_place && part.awaited == &part - parts.data();
    step.inputs.send_ahead(step.sequences, step.turn);
    prepared_->is_sent = true;
}

void Forward::launch(std::span<const int> drawn) {
    const Step& step = prepared_->step;
    under_way_.clear();
    step.inputs.fill_awaited(drawn);
    if (step.one_each) {
        const std::span ids(step.inputs.host().ids, elements(step.sequences));
        std::ranges::copy(ids, tokens_of(turn_before(step.turn)).begin());
    }
    begin_prepared();
}

/// Rows of nobody read what such rows have drawn: any token will do.
bool Forward::launch_ahead() {
    const bool is_there = prepared_->is_in_place && under_way_.size() == 1 &&
                          under_way_.front().turn == turn_before(prepared_->step.turn) &&
                          under_way_.front().sampled >= prepared_->step.sequences;
    if (is_there) begin_prepared();
    return is_there;
}

void Forward::begin_prepared() {
    Step& step = prepared_->step;
    const std::int64_t rows = prepared_->rows;
    const UnderWay begun{step.turn, rows, step.one_each ? step.sequences : rows};
    expect_tokens(begun);
    gpu_.wait_for_copies();  // also the inputs of one that was prepared and dropped
    if (!prepared_->is_sent) step.inputs.send(step.sequences, step.one_each ? step.turn : 0);
    if (step.one_each) {
        launch_graph(step);
    } else {
        enqueue_prompts(step, rows);
        step.sequences = rows;
        if (rows > 0) enqueue(Part::head, 0, step);
        if (rows > 0) enqueue(Part::sampling, 0, step);
    }
    turn_ = step.turn;
    under_way_.push_back(begun);
}

void Forward::launch_graph(const Step& step) {
    const StepGraph& graph = graph_of(step.sequences, step.kv_len, step.filters, step.turn);
    runtime::check(gpu_.driver(), gpu_.driver().cuGraphLaunch(graph.graph.get(), gpu_.stream()),
                   "launching a step's graph");
    graph.calls.launched();
}

void Forward::start(std::span<const StepPart> parts, std::span<const Draw> draws,
                    std::optional<Part> without) {
    under_way_.clear();
    prepare(parts, draws);
    prepared_->step.without = without;
    launch({});
}

/// In the host's memory.
std::span<std::int32_t> Forward::tokens_of(std::size_t turn) const {
    const std::size_t room = elements(capacity_.sequences);
    return memory_->drawn.span().subspan(turn * room, room);
}

void Forward::expect_tokens(const UnderWay& step) {
    std::ranges::fill(tokens_of(step.turn).first(elements(step.sampled)), not_drawn);
}

bool Forward::has_tokens() const {
    if (under_way_.empty() || under_way_.front().sampled == 0) return false;
    const UnderWay& step = under_way_.front();
    return std::ranges::none_of(tokens_of(step.turn).first(elements(step.sampled)), [](auto& token) {
        return std::atomic_ref(token).load(std::memory_order_acquire) == not_drawn;
    });
}

// The driver says that a kernel has ended some microseconds after what it wrote is there, and after a longer
// wait some hundreds.
bool Forward::wait_until(std::chrono::steady_clock::time_point end) {
    for (int look = 1; !has_tokens(); ++look) {
        if (look % looks_between_questions == 0 && gpu_.done()) break;
        if (look % looks_between_clocks == 0 && std::chrono::steady_clock::now() >= end) return false;
        pause();
    }
    return true;
}

std::vector<int> Forward::finish() {
    static_cast<void>(wait_until(std::chrono::steady_clock::time_point::max()));
    const UnderWay step = under_way_.front();
    std::vector<int> tokens;
    tokens.reserve(elements(step.rows));
    for (const std::int32_t token : tokens_of(step.turn).first(elements(step.rows))) {
        if (token < 0 || token >= model_.model.vocab_size) throw DecoderError(no_token(token, tokens.size()));
        tokens.push_back(token);
    }
    under_way_.erase(under_way_.begin());
    return tokens;
}

/// Without an error of the driver, which would have been thrown.
std::string Forward::no_token(std::int32_t found, std::size_t row) const {
    const std::string what = found == not_drawn ? "no token" : fmt::format("the token {}", found);
    return fmt::format(
        "the GPU says that a step has ended and wrote {} for row {} of {}; allowed: 0 to {}; the driver "
        "reported no error: hone tune --op rmsnorm --fields \"dtype=bf16 hidden=4096\" says whether this GPU "
        "computes right",
        what, row, under_way_.front().rows, model_.model.vocab_size - 1);
}

}  // namespace hone::decoder
