#include "decoder/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "decoder/jinja/fault.h"
#include "decoder/jinja/python_text.h"
#include "decoder/text/utf8.h"

namespace hone::decoder::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Lines end with "\n", and the last one's end is no text.
std::string with_plain_lines(std::string_view source) {
    std::string out;
    out.reserve(source.size());
    for (std::size_t i = 0; i < source.size(); ++i) {
        if (source[i] != '\r') {
            out += source[i];
            continue;
        }
        out += '\n';
        if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
    if (out.ends_with('\n')) out.pop_back();
    return out;
}

class Lexer {
  public:
    explicit Lexer(std::string_view source) : source_(source) {}

    std::vector<Token> run() {
        while (at_ < source_.size()) take_data();
        push(TokenKind::end, {});
        return std::move(tokens_);
    }

  private:
    [[noreturn]] void fail(const std::string& what) const { throw Fault(what, line_); }
    [[nodiscard]] std::string_view rest() const { return source_.substr(at_); }
    [[nodiscard]] char next() const { return at_ < source_.size() ? source_[at_] : '\0'; }
    void push(TokenKind kind, std::string_view text) { tokens_.push_back({kind, std::string(text), line_}); }

    /// Everything that is taken goes through here.
    std::string_view take(std::size_t length) {
        const std::string_view taken = source_.substr(at_, length);
        line_ += static_cast<int>(std::ranges::count(taken, '\n'));
        if (!taken.empty()) begins_line_ = taken.back() == '\n';
        at_ += taken.size();
        return taken;
    }
    void skip_spaces() { take(rest().size() - without_leading_spaces(rest()).size()); }

    [[nodiscard]] std::size_t next_tag() const {
        constexpr std::string_view kinds = "{%#";
        std::size_t at = source_.find('{', at_);
        while (at != std::string_view::npos && at + 1 < source_.size() &&
               kinds.find(source_[at + 1]) == std::string_view::npos)
            at = source_.find('{', at + 1);
        return at < source_.size() - 1 ? at : source_.size();
    }

    /// The text up to a tag, and the tag.
    void take_data() {
        const std::size_t tag = next_tag();
        if (tag == source_.size()) return push_data(rest(), source_.size() - at_);
        const char kind = source_[tag + 1];
        push_data(trimmed(source_.substr(at_, tag - at_), kind, tag), tag - at_);
        const bool has_sign =
            tag + 2 < source_.size() && (source_[tag + 2] == '-' || source_[tag + 2] == '+');
        take(has_sign ? 3 : 2);
        if (kind == '#') return skip_comment();
        if (kind == '%' && skip_raw_begin()) return take_raw();
        push(kind == '{' ? TokenKind::begin_output : TokenKind::begin_statement, {});
        take_tag(kind == '{');
    }

    void push_data(std::string_view text, std::size_t taken) {
        if (!text.empty()) push(TokenKind::data, text);
        take(taken);
    }

    /// Without what a tag of this kind at `tag` takes off the text in front of it.
    [[nodiscard]] std::string_view trimmed(std::string_view text, char kind, std::size_t tag) const {
        const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
        if (sign == '-') return without_trailing_spaces(text);
        if (sign == '+' || kind == '{') return text;
        const std::size_t line = text.rfind('\n') + 1;  // 0 where there is none
        const bool begins = line > 0 || begins_line_;
        return begins && without_leading_spaces(text.substr(line)).empty() ? text.substr(0, line) : text;
    }

    /// A tag's end, "%}" say, which may have a sign, and what it takes off the text behind it. `from`: where
    /// the sign may stand at the earliest.
    void take_end(std::string_view end, std::size_t from) {
        const bool trims = at_ > from && source_[at_ - 1] == '-';
        const bool keeps = at_ > from && source_[at_ - 1] == '+';
        take(end.size());
        if (trims) return skip_spaces();
        if (!keeps && next() == '\n') take(1);
    }

    void skip_comment() {
        const std::size_t from = at_;
        const std::size_t end = source_.find("#}", at_);
        if (end == std::string_view::npos) fail("the comment has no end");
        take(end - at_);
        take_end("#}", from);
    }

    /// Whether what follows "{%" is "raw %}".
    bool skip_raw_begin() {
        std::string_view tag = without_leading_spaces(rest());
        if (!tag.starts_with("raw")) return false;
        tag = without_leading_spaces(tag.substr(3));
        const bool trims = tag.starts_with('-');
        if (trims) tag.remove_prefix(1);
        if (!tag.starts_with("%}")) return false;
        take(rest().size() - tag.size() + 2);
        if (trims) skip_spaces();
        return true;
    }

    void take_raw() {
        for (std::size_t tag = source_.find("{%", at_); tag != std::string_view::npos;
             tag = source_.find("{%", tag + 1)) {
            const char after = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
            const std::size_t sign = after == '-' || after == '+' ? 1 : 0;
            std::string_view inner = without_leading_spaces(source_.substr(tag + 2 + sign));
            if (!inner.starts_with("endraw")) continue;
            inner = without_leading_spaces(inner.substr(6));
            const bool has_sign = inner.starts_with('-') || inner.starts_with('+');
            if (!inner.substr(has_sign ? 1 : 0).starts_with("%}")) continue;
            push_data(trimmed(source_.substr(at_, tag - at_), '%', tag), tag - at_);
            const std::size_t end = source_.size() - inner.size() + (has_sign ? 1 : 0);
            take(end - at_);
            return take_end("%}", has_sign ? end - 1 : end);
        }
        fail("{% raw %} has no {% endraw %}");
    }

    void take_tag(bool is_output) {
        const std::string_view end = is_output ? "}}" : "%}";
        while (true) {
            skip_spaces();
            if (at_ == source_.size()) fail("the tag has no end");
            if (open_.empty()) {
                const bool has_sign = next() == '-' || (next() == '+' && !is_output);
                if (rest().substr(has_sign ? 1 : 0).starts_with(end)) {
                    push(is_output ? TokenKind::end_output : TokenKind::end_statement, {});
                    const std::size_t from = at_;
                    if (has_sign) take(1);
                    return is_output ? end_output(from) : take_end(end, from);
                }
            }
            take_part();
        }
    }

    void end_output(std::size_t from) {
        const bool trims = at_ > from;
        take(2);
        if (trims) skip_spaces();
    }

    void take_part() {
        const char c = next();
        if (is_digit(c)) return take_number();
        if (is_letter(c)) {
            const auto end =
                std::ranges::find_if_not(rest(), [](char l) { return is_letter(l) || is_digit(l); });
            const auto length = static_cast<std::size_t>(end - rest().begin());
            push(TokenKind::name, rest().substr(0, length));
            take(length);
            return;
        }
        if (c == '\'' || c == '"') return take_literal(c);
        take_symbol();
    }

    /// The length of digits with single underscores between them.
    [[nodiscard]] std::size_t digits(std::size_t at) const {
        std::size_t end = at;
        while (end < source_.size() &&
               (is_digit(source_[end]) || (source_[end] == '_' && end > at && source_[end - 1] != '_' &&
                                           end + 1 < source_.size() && is_digit(source_[end + 1]))))
            ++end;
        return end - at;
    }

    void take_number() {
        const std::size_t whole = digits(at_);
        std::size_t length = whole;
        const auto c = [&](std::size_t i) { return at_ + i < source_.size() ? source_[at_ + i] : '\0'; };
        if (c(length) == '.' && is_digit(c(length + 1))) length += 1 + digits(at_ + length + 1);
        if (c(length) == 'e' || c(length) == 'E') {
            const std::size_t sign = c(length + 1) == '-' || c(length + 1) == '+' ? 1 : 0;
            if (is_digit(c(length + 1 + sign))) length += 1 + sign + digits(at_ + length + 1 + sign);
        }
        const bool is_real = length > whole && (at_ == 0 || source_[at_ - 1] != '.');
        if (!is_real) length = whole;
        if (!is_real && next() == '0' && (is_letter(c(1)) || (length > 1 && is_digit(c(1)))))
            fail(fmt::format("{:?}: allowed are decimal numbers", rest().substr(0, length + 1)));
        std::string number(rest().substr(0, length));
        std::erase(number, '_');
        push(is_real ? TokenKind::real : TokenKind::integer, number);
        take(length);
    }

    void take_literal(char quote) {
        std::size_t end = at_ + 1;
        while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
        if (end >= source_.size()) fail("a text in quotes has no end");
        try {
            push(TokenKind::text, unescaped(source_.substr(at_ + 1, end - at_ - 1)));
        } catch (const Fault& fault) {
            fail(fault.what());
        }
        take(end + 1 - at_);
    }

    void take_symbol() {
        static constexpr std::array<std::string_view, 6> pairs{"//", "**", "==", "!=", ">=", "<="};
        constexpr std::string_view singles = "+-/*%~[](){}<>=.:|,";
        const auto pair = std::ranges::find(pairs, rest().substr(0, 2));
        const std::string_view symbol = pair != pairs.end() ? *pair : rest().substr(0, 1);
        if (pair == pairs.end() && singles.find(symbol) == std::string_view::npos)
            fail(fmt::format("{:?} is no part of a statement", rest().substr(0, first_length(rest()))));
        balance(symbol[0]);
        push(TokenKind::symbol, symbol);
        take(symbol.size());
    }

    void balance(char symbol) {
        if (symbol == '(') open_ += ')';
        if (symbol == '[') open_ += ']';
        if (symbol == '{') open_ += '}';
        if (symbol != ')' && symbol != ']' && symbol != '}') return;
        if (!open_.ends_with(symbol))
            fail(open_.empty() ? fmt::format("\"{}\" closes nothing", symbol)
                               : fmt::format("\"{}\" where \"{}\" is needed", symbol, open_.back()));
        open_.pop_back();
    }

    std::string_view source_;
    std::size_t at_ = 0;
    int line_ = 1;
    bool begins_line_ = true;  ///< nothing was taken, or a line end last
    std::string open_{};       ///< what closes the brackets that are open
    std::vector<Token> tokens_{};
};

}  // namespace

std::vector<Token> read_tokens(std::string_view source) { return Lexer(with_plain_lines(source)).run(); }

}  // namespace hone::decoder::jinja
