// What a model thinks of a text that is there.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "decoder/error.h"
#include "decoder/forward/forward.h"
#include "decoder/forward/forward_memory.h"
#include "decoder/forward/token_chances.h"

namespace hone::decoder {

std::vector<double> Forward::log_probabilities(std::span<const int> text) {
    const auto length = static_cast<std::int64_t>(text.size());
    if (length < 2 || length > capacity_.context) {
        throw DecoderError(
            fmt::format("a text of {} tokens: allowed are 2 to {}, the context", length, capacity_.context));
    }
    std::vector<int> pages(elements((length + capacity_.page_size - 1) / capacity_.page_size));
    std::iota(pages.begin(), pages.end(), 0);
    std::vector<double> found;
    for (std::int64_t begin = 0; begin < length; begin += capacity_.step_tokens) {
        const std::int64_t tokens = std::min(capacity_.step_tokens, length - begin);
        const StepPart part{.begin = static_cast<int>(begin),
                            .tokens = text.subspan(elements(begin), elements(tokens)),
                            .pages = pages};
        const ForwardStep step = step_of_any({&part, 1});
        large_.send(capacity_.sequences, step.turn);
        calls_.enqueue_layers(step);
        gpu_.wait();
        const std::int64_t scored = std::min(tokens, length - 1 - begin);  // nothing follows the last token
        for (std::int64_t row = 0; row < scored; row += logit_rows()) {
            std::vector<AskedRow> asked;
            for (const auto& logits : compute_logits(row, std::min(logit_rows(), scored - row)))
                asked.push_back({logits, text[elements(begin + row + 1) + asked.size()]});
            for (const TokenChances& chances : chances_of(model_, asked))
                found.push_back(chances.log_probability);
        }
    }
    return found;
}

std::int64_t Forward::logit_rows() const { return ForwardMemory::read_rows(model_, capacity_); }

Forward::HostRows Forward::host_rows(std::int64_t rows) const {
    const std::size_t bytes = ForwardMemory::row_bytes(model_, 1, model_.model.vocab_size);
    HostRows found;
    for (std::int64_t row = 0; row < rows; ++row)
        found.push_back(memory_->read_logits.span().subspan(elements(row) * bytes, bytes));
    return found;
}

/// Rows that stand behind each other come by one copy.
Forward::HostRows Forward::read_logits(std::span<const std::int64_t> rows) {
    const runtime::Driver& driver = gpu_.driver();
    const std::size_t bytes = ForwardMemory::row_bytes(model_, 1, model_.model.vocab_size);
    for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
        while (end < rows.size() && rows[end] - rows[begin] == static_cast<std::int64_t>(end - begin)) ++end;
        runtime::check(driver,
                       driver.cuMemcpyDtoHAsync(memory_->read_logits.data() + begin * bytes,
                                                memory_->logits.address() + elements(rows[begin]) * bytes,
                                                (end - begin) * bytes, gpu_.stream()),
                       "copying logits from the GPU");
    }
    gpu_.wait();
    return host_rows(std::ssize(rows));
}

Forward::HostRows Forward::score_logits(std::size_t part, std::int64_t begin, std::int64_t rows) {
    return compute_logits(large_.scored_rows()[part] + begin, rows);
}

/// Of rows of the step with prompts that was computed last, whose last layer was computed for all of them.
Forward::HostRows Forward::compute_logits(std::int64_t first, std::int64_t rows) {
    std::vector<std::int64_t> places(elements(rows));
    std::iota(places.begin(), places.end(), 0);
    for (const std::int64_t place : places)
        large_.host().last_rows[place] = static_cast<std::int32_t>(first + place);
    large_.send(capacity_.sequences);
    calls_.enqueue_logits(large_.device(), rows);
    return read_logits(places);
}

}  // namespace hone::decoder
