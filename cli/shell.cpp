#include "cli/shell.h"

#include <algorithm>

namespace hone::cli {
namespace {

bool is_plain(char c) {
    constexpr std::string_view others = "_@%+=:,./-";
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           others.find(c) != std::string_view::npos;
}

}  // namespace

std::string quoted_for_shell(std::string_view word) {
    if (!word.empty() && std::ranges::all_of(word, is_plain)) return std::string(word);
    constexpr std::string_view special_in_double_quotes = "\"$`\\!";
    if (word.find_first_of(special_in_double_quotes) == std::string_view::npos)
        return '"' + std::string(word) + '"';
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + '\'';
}

std::string command_line(std::span<const std::string> arguments) {
    std::string text = "hone";
    for (const std::string& argument : arguments) text += ' ' + quoted_for_shell(argument);
    return text;
}

std::vector<std::string> without(std::vector<std::string> arguments, std::span<const std::string_view> flags,
                                 std::span<const std::string_view> options) {
    const auto is_one_of = [](std::span<const std::string_view> names, std::string_view word) {
        return std::ranges::find(names, word) != names.end();
    };
    std::vector<std::string> left;
    bool is_value = false;
    for (std::string& argument : arguments) {
        const std::string_view name = std::string_view(argument).substr(0, argument.find('='));
        const bool is_dropped = is_value || is_one_of(flags, argument) || is_one_of(options, name);
        is_value = !is_value && is_one_of(options, argument);
        if (!is_dropped) left.push_back(std::move(argument));
    }
    return left;
}

std::string option_words(std::string_view option, std::string_view value) {
    if (value.empty()) return {};
    return ' ' + std::string(option) + ' ' + quoted_for_shell(value);
}

}  // namespace hone::cli
