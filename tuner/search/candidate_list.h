// Which candidates of a problem are tried, in which order, and what is known of them before anything is
// compiled. Used by the tuner; measures nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tuner/measure/measurer.h"
#include "tuner/search/tuner.h"

namespace hone::tuner {

struct RunContext;

/// The candidates of a problem in the order in which they are tried: the default, the incumbent, kernels of
/// earlier races, then by prediction; last those that an earlier run did not survive.
struct CandidateList {
    std::vector<Candidate> order;
    std::optional<Candidate> fallback;
    std::optional<Candidate> incumbent;  ///< keeps its place unless it is beaten clearly
    std::size_t first_culprit = 0;       ///< index into order
};
/// How many candidates the problem's list will have, about, for estimates before there is one.
[[nodiscard]] std::size_t expected_candidates(const Problem& problem, const RunContext& run);
/// Starts what takes time about a list, ahead of list_candidates(); `place`: the problem's turn.
void prepare_list(const Problem& problem, std::size_t place, const RunContext& run);
[[nodiscard]] CandidateList list_candidates(const Problem& problem, const RunContext& run);
/// Those of its candidates that were known before the run: no prediction is waited for, and what the run
/// learns until the problem has its turn changes nothing.
[[nodiscard]] std::vector<Candidate> known_candidates(const Problem& problem, const RunContext& run);

/// Whether this very problem was raced before on some GPU, with a kernel that is still the same, and its
/// shortlist is known.
[[nodiscard]] bool was_raced(const Problem& problem, const RunContext& run);
/// The same on a GPU of this kind.
[[nodiscard]] bool was_raced_here(const Problem& problem, const RunContext& run);

/// A candidate with a time that it cannot beat.
struct Predicted {
    Candidate candidate;
    double us = 0;
};
/// Who takes least by what is known without measuring, the first of equals; nothing where nothing is known.
[[nodiscard]] std::optional<Predicted> best_predicted(const Problem& problem, const CandidateList& candidates,
                                                      const Measurer& measurer);
/// The candidates whose images are needed whatever comes of the others: all of them, unless it is known
/// without measuring who cannot win.
[[nodiscard]] std::vector<Candidate> surely_tried(const Problem& problem, const CandidateList& candidates,
                                                  const Measurer& measurer);

}  // namespace hone::tuner
