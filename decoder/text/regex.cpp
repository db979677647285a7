#include "decoder/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <new>
#include <optional>

#include "decoder/error.h"
#include "decoder/text/regex_syntax.h"
#include "decoder/text/utf8.h"

namespace hone::decoder {
namespace {

constexpr std::size_t max_pattern_bytes = 1U << 16;
/// Steps of one match. A run of ten million spaces takes as many of some patterns.
constexpr std::uint32_t max_steps = 20'000'000;
constexpr std::uint32_t max_heap_kib = 1U << 18;

/// What all matches of a text may take together: patterns that look ahead to its end from each place would
/// take a time that grows with its square. Some twenty times what others take, and of this thread's time
/// alone, so that a busy machine refuses nothing.
class TimeLimit {
  public:
    explicit TimeLimit(std::size_t text_bytes)
        : limit_(std::chrono::milliseconds(250) + std::chrono::microseconds(text_bytes)),
          end_(now() + limit_) {}

    /// Looks at the clock now and then.
    [[nodiscard]] bool is_over() { return ++looks_ % looks_between_clocks == 0 && now() > end_; }
    [[nodiscard]] double seconds() const { return std::chrono::duration<double>(limit_).count(); }

  private:
    static constexpr int looks_between_clocks = 16;

    static std::chrono::nanoseconds now() {
        timespec used{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
        return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
    }

    std::chrono::nanoseconds limit_;
    std::chrono::nanoseconds end_;
    int looks_ = 0;
};

template <class T, void (*release)(T*)>
struct Release {
    void operator()(T* value) const noexcept { release(value); }
};
using CompiledCode = std::unique_ptr<pcre2_code, Release<pcre2_code, pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Release<pcre2_match_data, pcre2_match_data_free>>;
using MatchContext =
    std::unique_ptr<pcre2_match_context, Release<pcre2_match_context, pcre2_match_context_free>>;
using CompileContext =
    std::unique_ptr<pcre2_compile_context, Release<pcre2_compile_context, pcre2_compile_context_free>>;

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

std::string message_of(int error) {
    std::array<PCRE2_UCHAR, 256> text{};
    pcre2_get_error_message(error, text.data(), text.size());
    return reinterpret_cast<const char*>(text.data());
}

template <class T>
T whole(T made) {
    if (!made) throw std::bad_alloc();
    return made;
}

CompiledCode compiled(std::string_view pattern) {
    const std::string syntax = pcre2_syntax(pattern);
    const CompileContext context = whole(CompileContext(pcre2_compile_context_create(nullptr)));
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    pcre2_set_max_pattern_length(context.get(), max_pattern_bytes);
    int error = 0;
    PCRE2_SIZE offset = 0;
    CompiledCode code(pcre2_compile(units(syntax), syntax.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE,
                                    &error, &offset, context.get()));
    if (!code) throw DecoderError(fmt::format("regular expression '{}': {}", pattern, message_of(error)));
    // Without it, where memory may not be executable, matches take longer.
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
    return code;
}

MatchContext limits() {
    MatchContext context = whole(MatchContext(pcre2_match_context_create(nullptr)));
    pcre2_set_match_limit(context.get(), max_steps);
    pcre2_set_depth_limit(context.get(), max_steps);
    pcre2_set_heap_limit(context.get(), max_heap_kib);
    return context;
}

}  // namespace

struct Regex::Code {
    CompiledCode code;
    MatchContext limits;

    /// PCRE2's answer: above zero for a match from `from` on.
    int match(std::string_view text, std::size_t from, pcre2_match_data* data) const {
        const int answer = match(text, from, data, PCRE2_NO_UTF_CHECK);
        if (answer != PCRE2_ERROR_JIT_STACKLIMIT) return answer;
        return match(text, from, data, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);
    }

  private:
    int match(std::string_view text, std::size_t from, pcre2_match_data* data, std::uint32_t options) const {
        return pcre2_match(code.get(), units(text), text.size(), from, options, data, limits.get());
    }
};

Regex::Regex(std::string_view pattern) : pattern_(pattern) {
    if (pattern.size() > max_pattern_bytes) {
        throw DecoderError(fmt::format("a regular expression of {} bytes; the most that is read is {}",
                                       pattern.size(), max_pattern_bytes));
    }
    code_ = std::make_shared<Code>(Code{compiled(pattern), limits()});
}

void Regex::find_all(std::string_view text, std::vector<Span>& matches) const {
    matches.clear();
    const MatchData data = whole(MatchData(pcre2_match_data_create(1, nullptr)));
    TimeLimit limit(text.size());
    std::optional<std::size_t> last_end;
    for (std::size_t from = 0; from <= text.size();) {
        const int answer = code_->match(text, from, data.get());
        if (answer == PCRE2_ERROR_NOMATCH) return;
        if (answer < 0)
            throw DecoderError(fmt::format("regular expression '{}': {}", pattern_, message_of(answer)));
        if (limit.is_over()) {
            throw DecoderError(
                fmt::format("regular expression '{}': takes more than {:.1f} s for a text of {} bytes; a "
                            "shorter text, or a pattern that looks at each place a few times, is matched",
                            pattern_, limit.seconds(), text.size()));
        }
        const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(data.get());
        const Span match{ends[0], ends[1]};
        from = match.end;
        const bool empty =
            match.begin >= match.end;  // \K is refused: a match ends at its beginning at the earliest
        if (empty) from += from < text.size() ? first_length(text.substr(from)) : 1;
        if (empty && last_end == match.end) continue;
        matches.push_back(match);
        last_end = match.end;
    }
}

}  // namespace hone::decoder
