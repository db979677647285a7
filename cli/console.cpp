#include "cli/console.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <system_error>

#include "kernel_templates/text.h"
#include "runtime/system/environment.h"
#include "runtime/system/short_text.h"
#include "tuner/report/report_text.h"

namespace hone::cli {
namespace {

bool terminal_is_smart() {
    const std::string term = runtime::environment_variable("TERM");
    return !term.empty() && term != "dumb";
}

bool colours_wanted() { return runtime::environment_variable("NO_COLOR").empty() && terminal_is_smart(); }

std::size_t page_columns() {
    constexpr std::size_t least = 40;
    const std::optional<std::int64_t> said = parse_integer(runtime::environment_variable("COLUMNS"));
    if (said && *said > 0) return std::max(static_cast<std::size_t>(*said), least);
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 0;
    return std::max<std::size_t>(size.ws_col, least);
}

}  // namespace

Console Console::of_process(std::span<char* const> arguments) {
    const bool json = std::ranges::find(arguments, std::string_view("--json")) != arguments.end();
    const bool colours = colours_wanted();
    const bool stderr_terminal = isatty(STDERR_FILENO) != 0;
    return {.arguments = {arguments.begin(), arguments.end()},
            .json = json,
            .page = {.colour = colours && !json && isatty(STDOUT_FILENO) != 0, .columns = page_columns()},
            .stderr_colour = colours && stderr_terminal,
            .stderr_terminal = stderr_terminal && terminal_is_smart()};
}

void Console::note(std::string_view line) const { hint(runtime::with_short_words(line)); }

void Console::hint(std::string_view line) const { say(runtime::escape_message(line) + '\n'); }

void Console::warn(std::string_view line) const {
    const std::string text = runtime::escape_message(runtime::with_short_words(line));
    say(fmt::format("{}warning:{} {}\n", stderr_colour ? "\033[33m" : "", stderr_colour ? "\033[0m" : "",
                    text));
}

void say(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

bool print(std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
        if (written >= 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno == EAGAIN) {  // a pipe that a parent made so that it does not wait
            pollfd room{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
            static_cast<void>(::poll(&room, 1, -1));
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

std::string why_not_printed() {
    return fmt::format("stdout cannot be written: {}", std::generic_category().message(errno));
}

}  // namespace hone::cli
