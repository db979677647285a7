// Kernels that may take a place in a model's step: right on this GPU, and not much slower than the winner
// when they run alone. Which of them is best where they run, beside other kernels, is not asked here.
#pragma once

#include <functional>
#include <vector>

#include "tuner/search/tuner.h"

namespace hone::tuner {

/// A problem, a kernel that serves it well, whose neighbours are asked for, and the one that the step came
/// with.
struct Led {
    Problem problem;
    Candidate leader;
    Candidate had;
};

/// A problem with what may serve it.
struct Proven {
    Problem problem;
    std::vector<cache::Trial> trials;  ///< measured here, the fastest first
};

/// Of each problem: who came close to its winner, or to that of its kin, whom it had, neighbours of its
/// leader in each tunable, and the leaders of the others. What has no time yet is verified and timed. Every
/// trial is stored; nobody wins. A problem of which the run stops before its turn has no trials.
[[nodiscard]] std::vector<Proven> prove(const std::vector<Led>& problems, Measurer& measurer,
                                        ImageSource& images, cache::Cache& cache,
                                        const std::function<bool()>& stop);

}  // namespace hone::tuner
