// Command lines that a user can paste: hints name commands that do what they say.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone::cli {

/// A word as a shell reads it back: bare where that is safe, else in quotes.
[[nodiscard]] std::string quoted_for_shell(std::string_view word);

/// "hone tune llama-3-8b --offline": this program with these arguments.
[[nodiscard]] std::string command_line(std::span<const std::string> arguments);

/// The arguments without these flags, and without these options and their values.
[[nodiscard]] std::vector<std::string> without(std::vector<std::string> arguments,
                                               std::span<const std::string_view> flags,
                                               std::span<const std::string_view> options);

/// " --arch sm_80", or nothing for an empty value.
[[nodiscard]] std::string option_words(std::string_view option, std::string_view value);

}  // namespace hone::cli
