#include "kernel_templates/text.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace hone {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
        }
    }
    return row.back();
}

}  // namespace

std::string lower_case(std::string_view text) {
    std::string lower(text);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return lower;
}

std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if (!is_utf8_continuation(text[i])) return 0;
    }
    const unsigned char second = byte(1);
    const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
    const bool outside = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
    return overlong || outside ? 0 : length;
}

std::string printable(std::string_view text) {
    std::string out(text.substr(0, 160));
    std::ranges::replace_if(
        out, [](char c) { return c < 0x20 || c > 0x7e; }, '?');
    return out;
}

std::pair<std::string_view, std::string_view> split_first_word(std::string_view text) {
    const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::size_t rest = std::min(text.find_first_not_of(' ', end), text.size());
    return {text.substr(begin, end - begin), text.substr(rest)};
}

std::optional<std::vector<KeyValue>> parse_key_values(std::string_view text, std::string* error) {
    std::vector<KeyValue> pairs;
    while (true) {
        const auto [word, rest] = split_first_word(text);
        if (word.empty()) return pairs;
        const std::size_t equals = word.find('=');
        if (equals == std::string_view::npos || equals == 0 || equals + 1 == word.size()) {
            return fail(error, "'" + std::string(word) + "' is not of the form name=value");
        }
        pairs.push_back({word.substr(0, equals), word.substr(equals + 1)});
        text = rest;
    }
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::string join(std::span<const std::string_view> items, std::string_view separator) {
    std::string text;
    for (const std::string_view item : items) {
        if (!text.empty()) text += separator;
        text += item;
    }
    return text;
}

std::string nearest_name(std::string_view text, std::span<const std::string_view> names) {
    if (text.size() > 64) return {};
    std::string_view best;
    std::size_t best_distance = std::max<std::size_t>(2, text.size() / 3) + 1;
    const std::string written = lower_case(text);
    for (const std::string_view name : names) {
        const std::size_t lengths_apart =
            std::max(name.size(), written.size()) - std::min(name.size(), written.size());
        if (lengths_apart >= best_distance) continue;  // the distance is no less
        const std::size_t distance = edit_distance(written, lower_case(name));
        if (distance < best_distance) {
            best_distance = distance;
            best = name;
        }
    }
    return std::string(best);
}

std::string did_you_mean(std::string_view text, std::span<const std::string_view> names) {
    const std::string nearest = nearest_name(text, names);
    return nearest.empty() ? std::string{} : " (did you mean '" + nearest + "'?)";
}

}  // namespace hone
