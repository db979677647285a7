#include "decoder/text/regex_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "decoder/error.h"
#include "decoder/text/utf8.h"

namespace hone::decoder {
namespace {

/// Unicode's White_Space, and all the rest, as members of a set.
constexpr std::string_view white_space =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view no_white_space =
    R"(\x{0}-\x{8}\x{E}-\x{1F}\x{21}-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027})"
    R"(\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF})";

/// Properties that are no scripts and have long names, and what PCRE2 calls them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> long_names{
    {{"alphabetic", "Alphabetic"},
     {"letter", "L"},
     {"mark", "M"},
     {"number", "N"},
     {"punctuation", "P"},
     {"symbol", "S"},
     {"separator", "Z"},
     {"other", "C"}}};

constexpr std::array<std::string_view, 10> groups{"(?:", "(?=",  "(?!",   "(?<=", "(?<!",
                                                  "(?>", "(?i:", "(?-i:", "(?i)", "(?-i)"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return out;
}

class Translation {
  public:
    explicit Translation(std::string_view pattern) : pattern_(pattern) {}

    std::string run() {
        while (at_ < pattern_.size()) next();
        return std::move(out_);
    }

  private:
    [[noreturn]] void refuse(std::string_view what) const {
        throw DecoderError(
            fmt::format("regular expression '{}': {} (byte {}) is not understood", pattern_, what, at_));
    }

    [[nodiscard]] std::string_view rest() const { return pattern_.substr(at_); }
    [[nodiscard]] char at(std::size_t offset) const {
        return at_ + offset < pattern_.size() ? pattern_[at_ + offset] : '\0';
    }
    void copy(std::size_t bytes) {
        out_ += rest().substr(0, bytes);
        at_ += std::min(bytes, rest().size());
    }
    void replace(std::size_t bytes, std::string_view text) {
        out_ += text;
        at_ += bytes;
    }

    void next() {
        if (at(0) == '\\') return escape();
        if (in_set_) return member();
        if (at(0) == '[') return begin_set();
        if (at(0) == '(') return group();
        if (at(0) == '{') return repetition();
        copy(1);
    }

    void begin_set() {
        in_set_ = true;
        copy(at(1) == '^' ? 2 : 1);
        if (at(0) == ']') refuse("a set that begins with ']'");
    }

    void member() {
        if (at(0) == '[') refuse("a set in a set");
        if (rest().starts_with("&&")) refuse("'&&' in a set");
        if (at(0) == ']') in_set_ = false;
        copy(1);
    }

    void group() {
        if (at(1) == '*') refuse("'(*'");
        if (at(1) != '?') return copy(1);
        const auto known =
            std::ranges::find_if(groups, [&](std::string_view start) { return rest().starts_with(start); });
        if (known == groups.end()) refuse(fmt::format("the group '{}'", shown(4)));
        // In the middle of a pattern it reaches as far as the next '|' in one syntax and beyond in the other.
        if (known->ends_with("i)") && at_ != 0) refuse("an option that is not at the beginning");
        copy(known->size());
    }

    /// Its end, or 0 where the brace is a character.
    [[nodiscard]] std::size_t repetition_length() const {
        std::size_t length = 1;
        while (is_digit(at(length)) || at(length) == ',') ++length;
        return length > 1 && at(length) == '}' ? length + 1 : 0;
    }

    void repetition() {
        const std::size_t length = repetition_length();
        if (length == 0) return copy(1);
        const std::string_view text = rest().substr(0, length);
        const bool exact = text.find(',') == std::string_view::npos;
        if (text[1] == ',' || at(length) == '+' || (exact && at(length) == '?'))
            refuse(fmt::format("the repetition '{}'", shown(length + 1)));
        copy(length);
    }

    void escape() {
        const char c = at(1);
        switch (c) {
            case 's': return replace(2, in_set_ ? white_space : fmt::format("[{}]", white_space));
            case 'S': return replace(2, in_set_ ? no_white_space : fmt::format("[{}]", no_white_space));
            case 'd': return replace(2, R"(\p{Nd})");
            case 'D': return replace(2, R"(\P{Nd})");
            case 'v': return replace(2, R"(\x{B})");
            case 'p':
            case 'P': return property();
            case 'x': return hex_character();
            case 'u': return wide_character();
            default: return simple_escape(c);
        }
    }

    void simple_escape(char c) {
        constexpr std::string_view everywhere = "tnrfae";
        constexpr std::string_view outside = "AzZ";
        const bool known = everywhere.find(c) != std::string_view::npos ||
                           (!in_set_ && outside.find(c) != std::string_view::npos);
        if (at_ + 1 >= pattern_.size() || ((is_letter(c) || is_digit(c)) && !known))
            refuse(fmt::format("the escape '{}'", shown(2)));
        if (static_cast<unsigned char>(c) >= 0x80) return replace(1, "");  // the character itself
        copy(2);
    }

    /// \x41 or \x{1F600}. Two digits above 7F are a byte, not a character, for Oniguruma.
    void hex_character() {
        if (at(2) == '{') return copy(3);
        if (!is_hex_digit(at(2)) || !is_hex_digit(at(3)) || at(2) > '7')
            refuse(fmt::format("the escape '{}'", shown(4)));
        copy(4);
    }

    /// Four digits: \u0041.
    void wide_character() {
        const std::string_view digits = pattern_.substr(std::min(at_ + 2, pattern_.size()), 4);
        if (digits.size() < 4 || !std::ranges::all_of(digits, is_hex_digit))
            refuse(fmt::format("the escape '{}'", shown(6)));
        replace(6, fmt::format("\\x{{{}}}", digits));
    }

    void property() {
        const std::size_t end = pattern_.find('}', at_);
        if (at(2) != '{' || end == std::string_view::npos) refuse(fmt::format("the property '{}'", shown(4)));
        std::string_view name = pattern_.substr(at_ + 3, end - at_ - 3);
        bool negated = at(1) == 'P';
        if (name.starts_with('^')) {
            negated = !negated;
            name.remove_prefix(1);
        }
        const bool plain =
            std::ranges::all_of(name, [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
        if (name.empty() || !plain) refuse(fmt::format("the property '{}'", shown(end + 1 - at_)));
        replace(end + 1 - at_, fmt::format("\\{}{{{}}}", negated ? 'P' : 'p', property_name(name)));
    }

    /// A general category, or a script in the narrow sense.
    static std::string property_name(std::string_view name) {
        const std::string key = lower(name);
        for (const auto& [long_name, short_name] : long_names)
            if (key == long_name) return std::string(short_name);
        return key.size() <= 2 || key == "any" ? std::string(name) : fmt::format("sc:{}", name);
    }

    /// The next bytes, with the rest of a character that they cut.
    [[nodiscard]] std::string shown(std::size_t bytes) const { return lossy_utf8(rest().substr(0, bytes)); }

    std::string_view pattern_;
    std::size_t at_ = 0;
    bool in_set_ = false;
    std::string out_;
};

}  // namespace

std::string pcre2_syntax(std::string_view pattern) { return Translation(pattern).run(); }

}  // namespace hone::decoder
