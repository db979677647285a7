#include "decoder/forward/step_inputs.h"

#include <algorithm>
#include <utility>

namespace hone::decoder {
namespace {

constexpr std::int64_t alignment = 256;

/// Gives out places one after the other.
class Places {
  public:
    template <class T>
    T* take(std::byte* base, std::int64_t count) {
        T* place = reinterpret_cast<T*>(base + next_);
        const auto bytes = count * static_cast<std::int64_t>(sizeof(T));
        next_ += (bytes + alignment - 1) / alignment * alignment;
        return place;
    }
    [[nodiscard]] std::int64_t size() const { return next_; }

  private:
    std::int64_t next_ = 0;
};

std::int64_t block_bytes(std::int64_t tokens, std::int64_t sequences, std::int64_t pages_a_sequence) {
    constexpr std::int64_t arrays = 14;
    return 8 * (2 * sequences) + 4 * (8 * sequences + 1 + 3 * tokens + sequences * pages_a_sequence) +
           arrays * alignment;
}

bool has_one(const StepPart& part) { return part.tokens.size() == 1; }

}  // namespace

StepInputs::StepInputs(const Gpu& gpu, std::int64_t tokens, std::int64_t sequences,
                       std::int64_t pages_a_sequence, std::size_t blocks)
    : gpu_(gpu),
      tokens_(tokens),
      sequences_(sequences),
      pages_a_sequence_(pages_a_sequence),
      sides_{side(), side()} {
    for (std::size_t i = 0; i < blocks; ++i) {
        Bytes memory(gpu.driver(), sides_[0].memory.size());
        const Arrays arrays = arrays_from(memory.data());
        blocks_.push_back({std::move(memory), arrays});
    }
    awaited_.reserve(static_cast<std::size_t>(sequences));
}

StepInputs::Side StepInputs::side() const {
    runtime::PinnedBuffer<std::byte> memory(
        gpu_.driver(), static_cast<std::size_t>(block_bytes(tokens_, sequences_, pages_a_sequence_)));
    std::ranges::fill(memory.span(), std::byte{0});
    const Arrays arrays = arrays_from(memory.data());
    return {std::move(memory), arrays};
}

StepInputs::Arrays StepInputs::arrays_from(std::byte* base) const {
    Places places;
    Arrays arrays;
    arrays.seed = places.take<std::int64_t>(base, sequences_);
    arrays.counter = places.take<std::int64_t>(base, sequences_);
    arrays.temperature = places.take<float>(base, sequences_);
    arrays.top_k = places.take<std::int32_t>(base, sequences_);
    arrays.top_p = places.take<float>(base, sequences_);
    arrays.min_p = places.take<float>(base, sequences_);
    arrays.q_starts = places.take<std::int32_t>(base, sequences_ + 1);
    arrays.kv_lengths = places.take<std::int32_t>(base, sequences_);
    arrays.last_rows = places.take<std::int32_t>(base, sequences_);
    arrays.awaited = places.take<std::int32_t>(base, sequences_);
    arrays.ids = places.take<std::int32_t>(base, tokens_);
    arrays.positions = places.take<std::int32_t>(base, tokens_);
    arrays.slots = places.take<std::int32_t>(base, tokens_);
    arrays.pages = places.take<std::int32_t>(base, sequences_ * pages_a_sequence_);
    return arrays;
}

void StepInputs::note_awaited(std::span<const StepPart> parts) {
    awaited_.clear();
    awaits_singles_ =
        std::ranges::all_of(parts, [](const StepPart& part) { return has_one(part) == (part.awaited >= 0); });
}

void StepInputs::fill_one_each(std::span<const StepPart> parts, std::int64_t rows) {
    const Arrays& in = host();
    note_awaited(parts);
    for (std::int64_t row = 0; row < rows; ++row) {
        if (row >= std::ssize(parts)) {
            in.kv_lengths[row] = 0;
            in.ids[row] = 0;
            in.awaited[row] = 0;
            in.positions[row] = 0;
            in.temperature[row] = 0;
            continue;
        }
        const StepPart& part = parts[static_cast<std::size_t>(row)];
        in.ids[row] = part.tokens.front();
        in.awaited[row] = part.awaited;
        if (part.awaited >= 0) awaited_.push_back({row, part.awaited});
        in.positions[row] = part.begin;
        in.kv_lengths[row] = part.begin + 1;
        std::ranges::copy(part.pages, in.pages + row * pages_a_sequence_);
    }
}

PackedStep StepInputs::fill(std::span<const StepPart> parts, std::int64_t page_size) {
    const Arrays& in = host();
    note_awaited(parts);
    scored_rows_.clear();
    const std::int64_t singles = std::ranges::count_if(parts, has_one);
    PackedStep step{.tokens = singles, .longest = 1, .prompts = std::ssize(parts) - singles};
    std::int64_t single = 0;
    std::int64_t prompt = singles;
    std::int64_t draw = 0;
    in.q_starts[0] = 0;
    for (const StepPart& part : parts) {
        const std::int64_t sequence = has_one(part) ? single : prompt++;
        std::int64_t row = has_one(part) ? single++ : step.tokens;
        std::int64_t position = part.begin;
        if (part.scores) scored_rows_.push_back(row);
        if (has_one(part)) in.awaited[row] = part.awaited;
        for (const int id : part.tokens) {
            const int page = part.pages[static_cast<std::size_t>(position / page_size)];
            in.ids[row] = id;
            in.positions[row] = static_cast<std::int32_t>(position);
            in.slots[row] = static_cast<std::int32_t>(page * page_size + position % page_size);
            ++position;
            ++row;
        }
        if (!has_one(part)) step.tokens = row;
        step.longest = std::max(step.longest, std::ssize(part.tokens));
        step.kv_len = std::max(step.kv_len, position);
        in.q_starts[sequence + 1] = static_cast<std::int32_t>(row);
        in.kv_lengths[sequence] = static_cast<std::int32_t>(position);
        std::ranges::copy(part.pages, in.pages + sequence * pages_a_sequence_);
        if (part.awaited >= 0) awaited_.push_back({row - 1, part.awaited});
        if (part.samples) in.last_rows[draw++] = static_cast<std::int32_t>(row - 1);
    }
    return step;
}

void StepInputs::fill_draws(std::span<const Draw> draws, double logit_divisor) const {
    const Arrays& in = host();
    std::int64_t row = 0;
    for (const Draw& draw : draws) {
        in.temperature[row] = static_cast<float>(draw.wishes.temperature * logit_divisor);
        in.top_k[row] = draw.wishes.top_k;
        in.top_p[row] = draw.wishes.top_p;
        in.min_p[row] = draw.wishes.min_p;
        in.seed[row] = draw.wishes.seed;
        in.counter[row] = draw.counter;
        ++row;
    }
}

void StepInputs::fill_awaited(std::span<const int> drawn) const {
    for (const Awaited& one : awaited_) host().ids[one.row] = drawn[static_cast<std::size_t>(one.drawn)];
}

void StepInputs::send(CUstream stream, std::int64_t sequences, std::size_t block) const {
    const std::byte* const begin = sides_[side_].memory.data();
    const auto* const end = host().pages + sequences * pages_a_sequence_;
    const auto bytes = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(end) - begin);
    runtime::check(gpu_.driver(),
                   gpu_.driver().cuMemcpyHtoDAsync(blocks_[block].memory.address(), begin, bytes, stream),
                   "copying a step's inputs to the GPU");
}

}  // namespace hone::decoder
