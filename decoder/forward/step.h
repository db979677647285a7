// One step as its operators are told it: whose tokens, how many, and which of them are drawn from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "decoder/forward/part.h"
#include "decoder/forward/step_inputs.h"

namespace hone::decoder {

/// Sequences up to which steps of one token each embed the tokens of the step before where that has drawn
/// them. In front of larger steps, and of those with prompts, these are brought to their rows.
constexpr std::int64_t most_in_place = 64;

struct ForwardStep {
    const StepInputs& inputs;
    std::int64_t tokens = 0;
    std::int64_t sequences = 0;
    std::int64_t kv_len = 0;   ///< of the longest
    bool one_each = false;     ///< each sequence has one token
    std::int64_t longest = 0;  ///< tokens of one sequence
    std::int64_t prompts = 0;  ///< sequences of more than one token, behind all others
    /// The residual stream has only rows that tokens are drawn from: StepInputs::Arrays::last_rows.
    bool drawn_rows = false;
    /// The last layer is computed for all rows, whose logits may be asked for.
    bool scores = false;
    bool filters = false;         ///< tokens are drawn from some of the vocabulary
    std::optional<Part> without;  ///< left out, for benchmarks
    std::size_t turn = 0;         ///< of `turns`: where its tokens go

    /// On the GPU.
    [[nodiscard]] const StepInputs::Arrays& in() const { return inputs.device(turn); }
    /// Whether its ids are where the step before has drawn them; else they are in().ids.
    [[nodiscard]] bool embeds_in_place() const { return one_each && sequences <= most_in_place; }
    /// Sequences of one token, in front of all others.
    [[nodiscard]] std::int64_t singles() const { return sequences - prompts; }
};

[[nodiscard]] inline ForwardStep step_of_one_each(const StepInputs& inputs, std::int64_t sequences,
                                                  std::int64_t kv_len, std::size_t turn = 0) {
    return {.inputs = inputs,
            .tokens = sequences,
            .sequences = sequences,
            .kv_len = kv_len,
            .one_each = true,
            .longest = 1,
            .without = {},
            .turn = turn};
}

}  // namespace hone::decoder
