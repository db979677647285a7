// What this process was asked, and what it may print where: data on stdout, progress and notes on stderr. The
// one place that looks at terminals and at NO_COLOR and TERM.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/shell.h"
#include "tuner/report/report_text.h"

namespace hone::cli {

struct Console {
    std::vector<std::string> arguments;  ///< this run's: hints repeat the command with all its options
    bool json = false;
    tuner::Page page;  ///< stdout's
    bool stderr_colour = false;
    bool stderr_terminal = false;  ///< cursor movement works: a progress bar, else plain lines

    /// Colours only on a terminal, without NO_COLOR (non-empty) and with a TERM that is not "dumb". Pages are
    /// as wide as COLUMNS says, else as the terminal; what goes elsewhere is not cut.
    [[nodiscard]] static Console of_process(std::span<char* const> arguments);

    /// "hone tune llama-3-8b --offline", for a shell.
    [[nodiscard]] std::string command() const { return command_line(arguments); }

    /// One line on stderr, control characters escaped; lines behind a line feed are indented.
    void note(std::string_view line) const;
    /// The same for what is to be pasted: however long, it stays whole.
    void hint(std::string_view line) const;
    void warn(std::string_view line) const;
};

/// Writes to stderr what may as well not be read: a terminal that is gone, or a full disk, costs no result.
void say(std::string_view text);

/// Writes all of it to stdout; false when that failed (disk full, reader gone), and errno says why.
[[nodiscard]] bool print(std::string_view text);
/// That in words.
[[nodiscard]] std::string why_not_printed();

}  // namespace hone::cli
