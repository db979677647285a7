// What a model thinks of a text that is there.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "decoder/error.h"
#include "decoder/forward/forward.h"
#include "decoder/forward/forward_memory.h"
#include "decoder/forward/log_softmax.h"
#include "runtime/quantize/small_floats.h"

namespace hone::decoder {
namespace {

/// Elements of a model's dtype as numbers.
class Logits {
  public:
    Logits(const Description& model, std::int64_t rows)
        : model_(model), bytes_(elements(rows * model.model.vocab_size * model.element_bytes())) {}

    [[nodiscard]] std::span<std::byte> first(std::int64_t rows) {
        return std::span(bytes_).first(elements(rows * model_.model.vocab_size * model_.element_bytes()));
    }

    /// Of the token in this row. NaN where a logit is NaN or infinite.
    [[nodiscard]] double log_probability(std::int64_t row, int token) const {
        const std::int64_t vocabulary = model_.model.vocab_size;
        std::vector<double> x(elements(vocabulary));
        for (std::int64_t i = 0; i < vocabulary; ++i) x[elements(i)] = number(row * vocabulary + i);
        return log_softmax(x, elements(token));
    }

  private:
    [[nodiscard]] double number(std::int64_t index) const {
        const std::byte* at = bytes_.data() + index * model_.element_bytes();
        float x = 0;
        if (model_.model.dtype == Dtype::fp32) {
            std::memcpy(&x, at, sizeof x);
        } else {
            std::uint16_t bits = 0;
            std::memcpy(&bits, at, sizeof bits);
            x = model_.model.dtype == Dtype::bf16 ? runtime::decode_bf16(bits) : runtime::decode_half(bits);
        }
        const double logit = x / model_.logit_divisor();
        const double cap = model_.model.logit_cap;
        return cap > 0 ? cap * std::tanh(logit / cap) : logit;
    }

    const Description& model_;
    std::vector<std::byte> bytes_;
};

}  // namespace

std::vector<double> Forward::log_probabilities(std::span<const int> text) {
    const auto length = static_cast<std::int64_t>(text.size());
    if (length < 2 || length > capacity_.context) {
        throw DecoderError(
            fmt::format("a text of {} tokens: allowed are 2 to {}, the context", length, capacity_.context));
    }
    std::vector<int> pages(elements((length + capacity_.page_size - 1) / capacity_.page_size));
    std::iota(pages.begin(), pages.end(), 0);
    Logits logits(model_, capacity_.sequences);
    std::vector<double> found;
    for (std::int64_t begin = 0; begin < length; begin += capacity_.step_tokens) {
        const std::int64_t tokens = std::min(capacity_.step_tokens, length - begin);
        const StepPart part{.begin = static_cast<int>(begin),
                            .tokens = text.subspan(elements(begin), elements(tokens)),
                            .pages = pages};
        const ForwardStep step = step_of_any({&part, 1});
        large_.send(capacity_.sequences);
        calls_.enqueue_layers(step);
        gpu_.wait();
        const std::int64_t scored = std::min(tokens, length - 1 - begin);  // nothing follows the last token
        for (std::int64_t row = 0; row < scored; row += capacity_.sequences) {
            const std::int64_t rows = std::min(capacity_.sequences, scored - row);
            read_logits(row, logits.first(rows), rows);
            for (std::int64_t i = 0; i < rows; ++i)
                found.push_back(logits.log_probability(i, text[elements(begin + row + i + 1)]));
        }
    }
    return found;
}

/// Of `rows` rows of the step that was computed last.
void Forward::read_logits(std::int64_t first, std::span<std::byte> to, std::int64_t rows) {
    for (std::int64_t i = 0; i < rows; ++i) large_.host().last_rows[i] = static_cast<std::int32_t>(first + i);
    large_.send(capacity_.sequences);
    calls_.enqueue_logits(large_.device(), rows);
    gpu_.wait();
    const runtime::Driver& driver = gpu_.driver();
    runtime::check(driver, driver.cuMemcpyDtoH(to.data(), memory_->logits.address(), to.size()),
                   "copying logits from the GPU");
}

}  // namespace hone::decoder
