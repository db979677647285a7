// A workload and what those who tune it side by side, each on a GPU of one kind, have together: see Agenda.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "tuner/search/agenda.h"
#include "tuner/search/asked_images.h"
#include "tuner/search/predictions.h"
#include "tuner/search/tuner.h"

namespace hone::tuner {

struct SharedWork {
    /// For at least one hand: fewer where there are fewer problems.
    SharedWork(const Workload& workload, std::size_t most_hands, const DeviceTraits& traits);

    [[nodiscard]] std::size_t hands() const { return lists.size(); }

    struct Result {
        std::size_t hand = 0;  ///< that raced it
        std::optional<ProblemResult> result;
    };

    const Workload& workload;
    const std::vector<std::vector<std::size_t>> lists;  ///< each hand's problems in their order
    Agenda agenda;
    Predictions predictions;
    AskedImages asked;
    std::vector<Result> results;             ///< by problem; each is its hand's while that is at work on it
    std::atomic<std::size_t> next_cover{0};  ///< static part that few kernels are to be chosen for
    std::atomic<bool> is_cleared{false};     ///< lost images have been dropped
};

/// Of a hand that fails, in the handler of its exception, which is thrown on where no other hand is left:
/// its problems are the others'. Returns why, for TuneResult::lost.
[[nodiscard]] std::string left_to_others(SharedWork& work, std::size_t hand, const std::exception& error);

/// The part of one hand, 0 to work.hands() - 1: its own problems, then what others leave. All hands of a work
/// run at the same time, each on a thread of its own with its own measurer and cache object. One whose
/// measurer or cache fails leaves its problems to the others; the last one throws.
[[nodiscard]] TuneResult tune(SharedWork& work, std::size_t hand, const TuneOptions& options,
                              Measurer& measurer, ImageSource& images, cache::Cache& cache,
                              const ProgressSink& progress, const std::atomic<bool>& stop);

}  // namespace hone::tuner
