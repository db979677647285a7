// How well a model foresees a text: what perplexity is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decoder/engine/running_model.h"

namespace hone::decoder {

struct TextScore {
    /// Natural logarithms, of each token that has another one before it in its window.
    std::vector<double> log_probabilities;

    /// The mean of minus them.
    [[nodiscard]] double nats_a_token() const;
    /// exp() of that.
    [[nodiscard]] double perplexity() const;
};

/// Reads the text in windows of so many tokens, each of which begins with `begin`, where there is such a
/// token, and sees nothing of the window before it. Throws DecoderError where no token is left to score, a
/// window is larger than the model's context, or a probability is not a number.
[[nodiscard]] TextScore score(RunningModel& model, std::span<const int> text, std::optional<int> begin,
                              std::int64_t window);

}  // namespace hone::decoder
