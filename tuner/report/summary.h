// What came of a tuning run, in a dozen lines: how much of what, how much faster, what it was worth most for.
// Text only; the command prints it above the tables.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tuner/report/report_text.h"
#include "tuner/search/tuner.h"

namespace hone::tuner {

struct Summary {
    std::size_t wanted = 0;         ///< problems of the workload
    std::size_t raced = 0;          ///< winners found by this run
    std::size_t known = 0;          ///< winners that were stored before
    std::size_t failed = 0;         ///< without a winner
    std::size_t reached = 0;        ///< all of these; the others wait for another run
    std::size_t kept_default = 0;   ///< winners that are the default
    std::size_t tied = 0;           ///< winners with others of their final that could have won as well
    std::size_t compared = 0;       ///< winners with a time of the default beside theirs
    std::optional<double> speedup;  ///< over the default: geometric mean of those
    std::vector<const ProblemResult*>
        most_saved;                          ///< largest gain a call first, in microseconds; at most three
    const ProblemResult* slowest = nullptr;  ///< of the winners
};

/// The results must outlive the summary.
[[nodiscard]] Summary summarize(std::span<const TuneResult* const> results, std::size_t wanted);

/// Lines of counts, speed-up and problems, two blanks in front.
[[nodiscard]] std::string to_text(const Summary& summary, const Page& page);

}  // namespace hone::tuner
