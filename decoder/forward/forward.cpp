#include "decoder/forward/forward.h"

#include <fmt/format.h>

#include <algorithm>

#include "decoder/error.h"
#include "decoder/forward/forward_memory.h"
#include "decoder/gpu/pause.h"

namespace hone::decoder {
namespace {

/// How often a wait looks for tokens until it asks the driver whether the step has failed, and what time it
/// is.
constexpr int looks_between_questions = 1000;
constexpr int looks_between_clocks = 50;

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

Forward::Forward(const Gpu& gpu, Runtime& runtime, const Description& model, const ModelWeights& weights,
                 const Capacity& capacity)
    : gpu_(gpu),
      runtime_(runtime),
      model_(model),
      weights_(weights),
      capacity_(capacity),
      operators_(runtime, model, weights, capacity),
      small_(gpu, capacity.sequences, capacity.sequences, capacity.pages_a_sequence(), turns),
      large_(gpu, capacity.step_tokens, capacity.sequences, capacity.pages_a_sequence(), turns),
      memory_(std::make_unique<ForwardMemory>(gpu, model, weights, capacity,
                                              operators_.workspace_bytes(model, capacity))),
      calls_(gpu, runtime, model, weights, capacity_, operators_, *memory_),
      graphs_(gpu, runtime, capacity_, calls_, small_),
      timer_(gpu) {
    under_way_.reserve(2);
    graphs_.capture_all();
}

Forward::~Forward() = default;

/// Filled up to the size of a graph.
ForwardStep Forward::step_of_singles(std::span<const StepPart> parts) {
    std::int64_t kv_len = 1;
    for (const StepPart& part : parts) kv_len = std::max<std::int64_t>(kv_len, part.begin + 1);
    const std::int64_t room = graphs_.padded(std::ssize(parts));
    small_.begin();
    small_.fill_one_each(parts, room);
    return step_of_one_each(small_, room, kv_len, turn_after(turn_));
}

ForwardStep Forward::step_of_any(std::span<const StepPart> parts) {
    large_.begin();
    const PackedStep packed = large_.fill(parts, capacity_.page_size);
    return {.inputs = large_,
            .tokens = packed.tokens,
            .sequences = std::ssize(parts),
            .kv_len = packed.kv_len,
            .longest = packed.longest,
            .prompts = packed.prompts,
            .scores = !large_.scored_rows().empty(),
            .without = {},
            .turn = turn_after(turn_)};
}

void Forward::prepare(std::span<const StepPart> parts, std::span<const Draw> draws) {
    const bool one_each = std::ranges::all_of(
        parts, [](const StepPart& part) { return part.samples && part.tokens.size() == 1; });
    prepared_.emplace(one_each ? step_of_singles(parts) : step_of_any(parts), std::ssize(draws));
    ForwardStep& step = prepared_->step;
    step.filters = std::ranges::any_of(draws, [](const Draw& draw) { return draw.wishes.filters(); });
    step.inputs.fill_draws(draws, model_.logit_divisor());
    prepared_->is_known_ahead = is_known_ahead(parts);
    if (under_way_.empty() || !(step.embeds_in_place() || prepared_->is_known_ahead)) return;
    step.inputs.send_ahead(step.sequences, step.turn);
    prepared_->is_sent = true;
}

/// Rows of nobody read what such rows have drawn: any token will do.
bool Forward::is_known_ahead(std::span<const StepPart> parts) const {
    if (under_way_.empty()) return false;
    const ForwardStep& step = prepared_->step;
    if (!step.embeds_in_place()) return step.inputs.awaits_singles();
    return under_way_.back().sampled >= step.sequences &&
           std::ranges::all_of(parts,
                               [&](const StepPart& part) { return part.awaited == &part - parts.data(); });
}

void Forward::launch(std::span<const int> drawn) {
    const ForwardStep& step = prepared_->step;
    under_way_.clear();
    step.inputs.fill_awaited(drawn);
    if (step.embeds_in_place()) {
        const std::span ids(step.inputs.host().ids, elements(step.sequences));
        std::ranges::copy(ids, memory_->drawn.of(turn_before(step.turn)).begin());
    }
    begin_prepared();
}

/// Where the step under way draws nothing, it has ended when all that was launched has.
bool Forward::launch_ahead() {
    const bool is_there =
        prepared_->is_known_ahead && under_way_.size() == 1 && under_way_.front().sampled > 0;
    if (is_there) begin_prepared();
    return is_there;
}

void Forward::begin_prepared() {
    ForwardStep& step = prepared_->step;
    const std::int64_t rows = prepared_->rows;
    const UnderWay begun{step.turn, rows, step.one_each ? step.sequences : rows};
    memory_->drawn.expect(begun.turn, begun.sampled);
    gpu_.wait_for_copies();  // also the inputs of one that was prepared and dropped
    if (!prepared_->is_sent) step.inputs.send(step.sequences, step.turn);
    if (prepared_->is_known_ahead && !step.embeds_in_place()) calls_.enqueue_awaited(step);
    if (step.one_each) {
        graphs_.launch(step);
    } else {
        calls_.enqueue_prompts(step, rows);
        step.sequences = rows;
        if (rows > 0) calls_.enqueue_draws(step);
    }
    turn_ = step.turn;
    under_way_.push_back(begun);
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
