#include "decoder/jinja/python_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "decoder/jinja/fault.h"
#include "decoder/text/characters.h"
#include "decoder/text/utf8.h"

namespace hone::decoder::jinja {
namespace {

std::size_t last_length(std::string_view text) {
    std::size_t last = text.size() - 1;
    while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    return text.size() - last;
}

template <class Test>
std::string_view trimmed_front(std::string_view text, const Test& goes) {
    while (!text.empty() && goes(text.substr(0, first_length(text)))) text.remove_prefix(first_length(text));
    return text;
}

template <class Test>
std::string_view trimmed_back(std::string_view text, const Test& goes) {
    while (!text.empty() && goes(text.substr(text.size() - last_length(text))))
        text.remove_suffix(last_length(text));
    return text;
}

bool is_space_text(std::string_view character) { return is_space(first_code_point(character)); }

bool is_category(char32_t c, std::span<const utf8proc_category_t> categories) {
    return std::ranges::find(categories, utf8proc_category(static_cast<utf8proc_int32_t>(c))) !=
           categories.end();
}

bool is_letter(char32_t c) {
    static constexpr utf8proc_category_t letters[] = {UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LL,
                                                      UTF8PROC_CATEGORY_LT, UTF8PROC_CATEGORY_LM,
                                                      UTF8PROC_CATEGORY_LO};
    return is_category(c, letters);
}

bool is_digit(char32_t c) {
    static constexpr utf8proc_category_t digits[] = {UTF8PROC_CATEGORY_ND};
    return is_category(c, digits);
}

/// Whether repr() leaves it as it is.
bool is_printable(char32_t c) {
    static constexpr utf8proc_category_t others[] = {
        UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CF, UTF8PROC_CATEGORY_CS, UTF8PROC_CATEGORY_CO,
        UTF8PROC_CATEGORY_CN, UTF8PROC_CATEGORY_ZL, UTF8PROC_CATEGORY_ZP, UTF8PROC_CATEGORY_ZS};
    return c == ' ' || !is_category(c, others);
}

char32_t simple_upper(char32_t c) {
    if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 0x20 : c;
    return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
char32_t simple_lower(char32_t c) {
    if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 0x20 : c;
    return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

/// Whether Unicode's SpecialCasing has an entry for it.
bool is_special_case(char32_t c) {
    const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
    return c == 0xDF || c == 0x130 || c == 0x149 || c == 0x1C4 || within(0x1C5, 0x1CC) || c == 0x1F0 ||
           within(0x1F1, 0x1F3) || c == 0x345 || c == 0x390 || c == 0x3A3 || c == 0x3B0 || c == 0x587 ||
           within(0x10D0, 0x10FF) || within(0x1E96, 0x1E9E) || within(0x1F50, 0x1F56) ||
           within(0x1F80, 0x1FFC) || within(0xFB00, 0xFB17);
}

template <class Change>
std::string changed(std::string_view text, const Change& change) {
    std::string out;
    out.reserve(text.size());
    for (; !text.empty(); text.remove_prefix(first_length(text))) {
        const char32_t c = first_code_point(text);
        if (c >= 0x80 && is_special_case(c))
            throw Fault(
                fmt::format("the other case of {:?} is not known here", text.substr(0, first_length(text))));
        append_code_point(out, change(c));
    }
    return out;
}

bool is_cased(char32_t c) { return simple_upper(c) != c || simple_lower(c) != c; }

/// Appends what is behind a backslash, and returns how many bytes that took.
class Escape {
  public:
    explicit Escape(std::string_view rest) : rest_(rest) {}

    std::size_t append_to(std::string& out) const {
        constexpr std::string_view letters = "ntrabfv'\"\\";
        constexpr std::string_view values = "\n\t\r\a\b\f\v'\"\\";
        const char c = rest_.front();
        if (const std::size_t at = letters.find(c); at != std::string_view::npos) {
            out += values[at];
            return 1;
        }
        if (c == '\n') return 1;
        if (c >= '0' && c <= '7') return append_octal(out);
        if (c == 'x') return append_hexadecimal(out, 2);
        if (c == 'u') return append_hexadecimal(out, 4);
        if (c == 'U') return append_hexadecimal(out, 8);
        if (c == 'N') throw Fault("\\N in a text: characters are not known by name here");
        out += '\\';
        return 0;
    }

  private:
    std::size_t append_octal(std::string& out) const {
        char32_t value = 0;
        std::size_t length = 0;
        for (; length < 3 && length < rest_.size() && rest_[length] >= '0' && rest_[length] <= '7'; ++length)
            value = value * 8 + static_cast<char32_t>(rest_[length] - '0');
        append_code_point(out, value);
        return length;
    }

    std::size_t append_hexadecimal(std::string& out, std::size_t digits) const {
        std::uint32_t value = 0;
        const char* const from = rest_.data() + 1;
        const char* const to = from + std::min(digits, rest_.size() - 1);
        const auto [end, error] = std::from_chars(from, to, value, 16);
        if (error != std::errc() || end != from + digits || value > 0x10FFFF ||
            (value >= 0xD800 && value <= 0xDFFF))
            throw Fault(fmt::format("\\{} in a text: {} hexadecimal digits of a character have to follow",
                                    rest_.front(), digits));
        append_code_point(out, value);
        return digits + 1;
    }

    std::string_view rest_;
};

}  // namespace

bool is_space(char32_t c) { return (c >= 0x1C && c <= 0x1F) || is_white_space(c); }

std::string_view without_leading_spaces(std::string_view text) { return trimmed_front(text, is_space_text); }
std::string_view without_trailing_spaces(std::string_view text) { return trimmed_back(text, is_space_text); }

std::string_view without_leading(std::string_view text, std::string_view characters) {
    return trimmed_front(text,
                         [&](std::string_view c) { return characters.find(c) != std::string_view::npos; });
}

std::string_view without_trailing(std::string_view text, std::string_view characters) {
    return trimmed_back(text,
                        [&](std::string_view c) { return characters.find(c) != std::string_view::npos; });
}

std::vector<std::size_t> character_places(std::string_view text) {
    std::vector<std::size_t> places;
    places.reserve(text.size() + 1);
    for (std::size_t at = 0; at < text.size(); at += first_length(text.substr(at))) places.push_back(at);
    places.push_back(text.size());
    return places;
}

std::string_view part_of(std::string_view text, std::size_t from, std::size_t to) {
    const auto bytes_of = [](std::string_view of, std::size_t characters) {
        std::size_t at = 0;
        while (characters-- > 0) at += first_length(of.substr(at));
        return at;
    };
    text.remove_prefix(bytes_of(text, from));
    return text.substr(0, bytes_of(text, to - from));
}

std::size_t find_in(std::string_view text, std::string_view part, std::size_t from) {
    if (from > text.size()) return std::string_view::npos;
    if (part.empty()) return from;
    const void* const found = ::memmem(text.data() + from, text.size() - from, part.data(), part.size());
    if (found == nullptr) return std::string_view::npos;
    return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::size_t count_of(std::string_view text, std::string_view part, std::int64_t most) {
    const auto limit = static_cast<std::size_t>(most);  // a negative one is the largest
    if (part.empty()) return std::min(count_characters(text) + 1, limit);
    std::size_t count = 0;
    for (std::size_t at = find_in(text, part); at != std::string_view::npos && count < limit;
         at = find_in(text, part, at + part.size()))
        ++count;
    return count;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator, std::int64_t most) {
    std::vector<std::string_view> parts;
    for (std::size_t at = find_in(text, separator); at != std::string_view::npos && most != 0; --most) {
        parts.push_back(text.substr(0, at));
        text.remove_prefix(at + separator.size());
        at = find_in(text, separator);
    }
    parts.push_back(text);
    return parts;
}

std::vector<std::string_view> split_from_end(std::string_view text, std::string_view separator,
                                             std::int64_t most) {
    std::vector<std::string_view> parts;
    for (std::size_t at = text.rfind(separator); at != std::string_view::npos && most != 0; --most) {
        parts.push_back(text.substr(at + separator.size()));
        text = text.substr(0, at);
        at = text.rfind(separator);
    }
    parts.push_back(text);
    std::ranges::reverse(parts);
    return parts;
}

std::vector<std::string_view> words_of(std::string_view text, std::int64_t most) {
    std::vector<std::string_view> words;
    text = without_leading_spaces(text);
    for (; !text.empty() && most != 0; --most) {
        const std::string_view rest =
            trimmed_front(text, [](std::string_view c) { return !is_space_text(c); });
        words.push_back(text.substr(0, text.size() - rest.size()));
        text = without_leading_spaces(rest);
    }
    if (!text.empty()) words.push_back(without_trailing_spaces(text));
    return words;
}

std::vector<std::string_view> lines_of(std::string_view text, bool with_ends) {
    const auto is_end = [](char32_t c) {
        return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
               c == 0x2029;
    };
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::string_view rest =
            trimmed_front(text, [&](std::string_view c) { return !is_end(first_code_point(c)); });
        const std::size_t length = text.size() - rest.size();
        const std::size_t end = rest.empty() ? 0 : rest.starts_with("\r\n") ? 2 : first_length(rest);
        lines.push_back(text.substr(0, length + (with_ends ? end : 0)));
        text.remove_prefix(length + end);
    }
    return lines;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to, std::int64_t most) {
    std::string out;
    if (from.empty()) {  // between all characters
        for (; most != 0; --most) {
            out += to;
            if (text.empty()) return out;
            out += text.substr(0, first_length(text));
            text.remove_prefix(first_length(text));
        }
        return out.append(text);
    }
    for (std::size_t at = find_in(text, from); at != std::string_view::npos && most != 0; --most) {
        out.append(text.substr(0, at)).append(to);
        text.remove_prefix(at + from.size());
        at = find_in(text, from);
    }
    return out.append(text);
}

std::string upper(std::string_view text) { return changed(text, simple_upper); }
std::string lower(std::string_view text) { return changed(text, simple_lower); }

std::string capitalized(std::string_view text) {
    bool is_first = true;
    return changed(
        text, [&](char32_t c) { return std::exchange(is_first, false) ? simple_upper(c) : simple_lower(c); });
}

std::string titled(std::string_view text) {
    bool is_inside = false;
    return changed(text, [&](char32_t c) {
        return std::exchange(is_inside, is_cased(c)) ? simple_lower(c) : simple_upper(c);
    });
}

bool is_all(std::string_view text, std::string_view method) {
    const bool wants_upper = method == "isupper";
    const bool wants_case = wants_upper || method == "islower";
    bool has_one = false;
    for (; !text.empty(); text.remove_prefix(first_length(text))) {
        const char32_t c = first_code_point(text);
        const bool fits = wants_case ? (wants_upper ? simple_upper(c) : simple_lower(c)) == c
                          : method == "isspace"
                              ? is_space(c)
                              : (method != "isdigit" && is_letter(c)) || (method != "isalpha" && is_digit(c));
        if (!fits) return false;
        has_one = has_one || !wants_case || is_cased(c);
    }
    return has_one;
}

std::string unescaped(std::string_view literal) {
    std::string out;
    for (std::size_t at = literal.find('\\'); at != std::string_view::npos; at = literal.find('\\')) {
        out += literal.substr(0, at);
        literal.remove_prefix(at + 1);
        literal.remove_prefix(Escape(literal).append_to(out));
    }
    return out.append(literal);
}

std::string quoted(std::string_view text) {
    const bool has_single = text.find('\'') != std::string_view::npos;
    const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
    std::string out(1, quote);
    for (; !text.empty(); text.remove_prefix(first_length(text))) {
        const char32_t c = first_code_point(text);
        if (c == static_cast<unsigned char>(quote) || c == '\\')
            (out += '\\') += static_cast<char>(c);
        else if (c == '\n')
            out += "\\n";
        else if (c == '\r')
            out += "\\r";
        else if (c == '\t')
            out += "\\t";
        else if (is_printable(c))
            out += text.substr(0, first_length(text));
        else
            out += c < 0x100     ? fmt::format("\\x{:02x}", static_cast<unsigned>(c))
                   : c < 0x10000 ? fmt::format("\\u{:04x}", static_cast<unsigned>(c))
                                 : fmt::format("\\U{:08x}", static_cast<unsigned>(c));
    }
    return out += quote;
}

std::string number_text(double number) {
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
    std::string text = fmt::format("{}", number);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
}

}  // namespace hone::decoder::jinja
