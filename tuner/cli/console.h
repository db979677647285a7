// What this process may print where: data on stdout, progress and notes on stderr. The one place that looks
// at terminals and at NO_COLOR and TERM.
#pragma once

#include <string_view>

#include "tuner/report/report_text.h"

namespace hone::cli {

struct Console {
    bool json = false;
    tuner::Page page;  ///< stdout's
    bool stderr_colour = false;
    bool stderr_terminal = false;  ///< cursor movement works: a progress bar, else plain lines

    /// Colours only on a terminal, without NO_COLOR (non-empty) and with a TERM that is not "dumb". Pages are
    /// as wide as COLUMNS says, else as the terminal; what goes elsewhere is not cut.
    [[nodiscard]] static Console of_process(bool json);

    /// One line on stderr, control characters escaped.
    void note(std::string_view line) const;
    void warn(std::string_view line) const;
};

/// Writes all of it to stdout; false when that failed (disk full, reader gone).
[[nodiscard]] bool print(std::string_view text);

}  // namespace hone::cli
