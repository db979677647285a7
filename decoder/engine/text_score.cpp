#include "decoder/engine/text_score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "decoder/error.h"

namespace hone::decoder {

double TextScore::nats_a_token() const {
    const double sum = std::accumulate(log_probabilities.begin(), log_probabilities.end(), 0.0);
    return -sum / static_cast<double>(log_probabilities.size());
}

double TextScore::perplexity() const { return std::exp(nats_a_token()); }

TextScore score(RunningModel& model, std::span<const int> text, std::optional<int> begin,
                std::int64_t window) {
    if (window < 2 || window > model.capacity().context) {
        throw DecoderError(fmt::format("a window of {} tokens: allowed are 2 to {}, the context", window,
                                       model.capacity().context));
    }
    const std::size_t room = static_cast<std::size_t>(window) - (begin ? 1 : 0);
    TextScore found;
    for (std::size_t start = 0; start < text.size(); start += room) {
        const std::span<const int> part = text.subspan(start, std::min(room, text.size() - start));
        std::vector<int> ids(part.begin(), part.end());
        if (begin) ids.insert(ids.begin(), *begin);
        if (ids.size() < 2) continue;  // one token of a window without a beginning
        const std::vector<double> of_window = model.forward().log_probabilities(ids);
        found.log_probabilities.insert(found.log_probabilities.end(), of_window.begin(), of_window.end());
    }
    if (found.log_probabilities.empty())
        throw DecoderError("no token of the text has another one before it: give a longer text");
    const auto bad =
        std::ranges::find_if_not(found.log_probabilities, [](double p) { return std::isfinite(p); });
    if (bad != found.log_probabilities.end())
        throw DecoderError(
            fmt::format("the model gives scored token {} the log probability {}: its logits are not finite",
                        bad - found.log_probabilities.begin(), *bad));
    return found;
}

}  // namespace hone::decoder
