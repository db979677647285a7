#include "tuner/cli/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tuner/report/report_text.h"

namespace hone::cli {
namespace {

bool colours_wanted() {
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return (no_color == nullptr || *no_color == '\0') && term != nullptr && *term != '\0' &&
           std::string_view(term) != "dumb";
}

}  // namespace

Console Console::of_process(bool json) {
    const char* term = std::getenv("TERM");
    const bool smart = term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
    const bool colours = colours_wanted();
    const bool stderr_terminal = isatty(STDERR_FILENO) != 0;
    return {.json = json,
            .stdout_colour = colours && !json && isatty(STDOUT_FILENO) != 0,
            .stderr_colour = colours && stderr_terminal,
            .stderr_terminal = stderr_terminal && smart};
}

void Console::note(std::string_view line) const {
    const std::string text = tuner::escape_controls(line, true) + '\n';
    std::fwrite(text.data(), 1, text.size(), stderr);
}

void Console::warn(std::string_view line) const {
    const std::string text = tuner::escape_controls(line, true);
    fmt::print(stderr, "{}warning:{} {}\n", stderr_colour ? "\033[33m" : "", stderr_colour ? "\033[0m" : "",
               text);
}

bool print(std::string_view text) {
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    return std::fflush(stdout) == 0 && written;
}

}  // namespace hone::cli
