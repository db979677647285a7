#include "decoder/serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace hone::decoder {
namespace {

constexpr std::array<const char*, request_ends> end_names{"completed", "refused",   "too_many",
                                                          "left",      "cancelled", "failed"};

void append_head(std::string& text, const char* name, const char* type, const char* help) {
    fmt::format_to(std::back_inserter(text), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

template <class Value>
void append(std::string& text, const char* name, const char* type, const char* help, Value value) {
    append_head(text, name, type, help);
    fmt::format_to(std::back_inserter(text), "{} {}\n", name, value);
}

}  // namespace

void TimeHistogram::add(double seconds) {
    const auto limit = std::ranges::lower_bound(limits, seconds);
    ++counts_[static_cast<std::size_t>(limit - limits.begin())];
    sum_ += seconds;
}

void TimeHistogram::append_to(std::string& text, const char* name, const char* help) const {
    append_head(text, name, "histogram", help);
    const auto out = std::back_inserter(text);
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < limits.size(); ++i) {
        count += counts_[i];
        fmt::format_to(out, "{}_bucket{{le=\"{}\"}} {}\n", name, limits[i], count);
    }
    count += counts_.back();
    fmt::format_to(out, "{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, count,
                   sum_.load());
}

std::string Metrics::text(const EngineState& engine, int requests) const {
    std::string text;
    append_head(text, "hone_requests_total", "counter", "Requests for text, by what became of them");
    for (std::size_t i = 0; i < request_ends; ++i)
        text += fmt::format("hone_requests_total{{outcome=\"{}\"}} {}\n", end_names[i], ends_[i].load());
    append(text, "hone_requests_active", "gauge", "Requests that are answered now", requests);
    append(text, "hone_sequences_running", "gauge", "Texts that take part in steps", engine.running);
    append(text, "hone_sequences_waiting", "gauge", "Texts that wait for room", engine.waiting);
    append(text, "hone_cache_pages", "gauge", "Pages of the cache of keys and values", engine.pages);
    append(text, "hone_cache_pages_used", "gauge", "Pages that texts hold", engine.pages_used);
    append(text, "hone_prompt_tokens_total", "counter", "Tokens of prompts that came", prompt_tokens_.load());
    append(text, "hone_prompt_tokens_computed_total", "counter",
           "Tokens computed in steps for texts that did not grow yet: also again, where a text gave way",
           engine.counters.prompt_tokens);
    append(text, "hone_prompt_tokens_shared_total", "counter",
           "Tokens of prompts found in pages of other texts", engine.counters.shared_tokens);
    append(text, "hone_generated_tokens_total", "counter", "New tokens", engine.new_tokens);
    append(text, "hone_steps_total", "counter", "Steps computed", engine.counters.steps);
    append(text, "hone_mixed_steps_total", "counter", "Of these, with prompts beside texts that grow",
           engine.counters.mixed_steps);
    append(text, "hone_prepared_steps_total", "counter", "Steps prepared while the one before was computed",
           engine.times.prepared_steps);
    append(text, "hone_ahead_steps_total", "counter", "Of these, launched by then", engine.times.ahead_steps);
    append(text, "hone_steps_seconds_total", "counter", "Time of all steps", engine.times.steps_s);
    append(text, "hone_mixed_steps_seconds_total", "counter",
           "Time of those with prompts beside texts that grow", engine.times.mixed_steps_s);
    append(text, "hone_mixed_steps_expected_seconds_total", "counter",
           "What those were expected to take: --step-stretch goes by it", engine.times.expected_mixed_s);
    append(text, "hone_between_steps_seconds_total", "counter",
           "Time from a step to the next, where there was one to compute", engine.times.between_steps_s);
    append(text, "hone_preemptions_total", "counter", "Texts that gave their pages away, to be computed anew",
           engine.counters.preemptions);
    to_first_token.append_to(text, "hone_time_to_first_token_seconds",
                             "From a request's arrival to its first token");
    between_tokens.append_to(text, "hone_time_between_tokens_seconds", "From a text's token to its next");
    return text;
}

}  // namespace hone::decoder
