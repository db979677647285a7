#include "decoder/forward/forward.h"

#include <fmt/format.h>

#include <algorithm>

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
/// How often a wait looks for tokens until it asks the driver whether the step has failed, and what time it
/// is.
constexpr int looks_between_questions = 1000;
constexpr int looks_between_clocks = 50;
/// Lengths that a graph's attention is chosen for: this one, and each as many times as long as the one
/// before. It reads what is there, whatever its graph's length is.
constexpr std::int64_t least_graph_length = 1024;
constexpr std::int64_t graph_length_step = 4;

/// What a step has left without an error of the driver, which would have been thrown.
std::string no_token(std::int32_t found, std::size_t row, std::int64_t rows, std::int64_t vocabulary) {
    const std::string what =
        found == DrawnTokens::not_drawn ? "no token" : fmt::format("the token {}", found);
    return fmt::format(
        "the GPU says that a step has ended and wrote {} for row {} of {}; allowed: 0 to {}; the driver "
        "reported no error: hone tune --op rmsnorm --fields \"dtype=bf16 hidden=4096\" says whether this GPU "
        "computes right",
        what, row, rows, vocabulary - 1);
}

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
      large_(gpu, capacity.step_tokens, capacity.sequences, capacity.pages_a_sequence()),
      timer_(gpu) {
    under_way_.reserve(2);
    memory_ =
        std::make_unique<Memory>(gpu, model, weights, capacity, operators_.workspace_bytes(model, capacity));
    capture_graphs();
}

Forward::~Forward() = default;

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

void Forward::prepare(std::span<const StepPart> parts, std::span<const Draw> draws) {
    const bool one_each = std::ranges::all_of(
        parts, [](const StepPart& part) { return part.samples && part.tokens.size() == 1; });
    prepared_.emplace(one_each ? step_of_singles(parts) : step_of_any(parts), std::ssize(draws));
    Step& step = prepared_->step;
    step.filters = std::ranges::any_of(draws, [](const Draw& draw) { return draw.wishes.filters(); });
    step.inputs.fill_draws(draws, model_.logit_divisor());
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
        std::ranges::copy(ids, memory_->drawn.of(turn_before(step.turn)).begin());
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
    memory_->drawn.expect(begun.turn, begun.sampled);
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

bool Forward::has_tokens() const {
    if (under_way_.empty() || under_way_.front().sampled == 0) return false;
    return memory_->drawn.are_there(under_way_.front().turn, under_way_.front().sampled);
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
    for (const std::int32_t token : memory_->drawn.of(step.turn).first(elements(step.rows))) {
        if (token < 0 || token >= model_.model.vocab_size)
            throw DecoderError(no_token(token, tokens.size(), step.rows, model_.model.vocab_size));
        tokens.push_back(token);
    }
    under_way_.erase(under_way_.begin());
    return tokens;
}

}  // namespace hone::decoder
