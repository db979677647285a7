// Why a size runs the kernel that it runs: the dispatcher's own choice, put into words. Needs no device, so
// that `hone explain` can also answer for another GPU's traits.
#pragma once

#include "cache/cache.h"
#include "hone/report.h"
#include "runtime/choice.h"

namespace hone::runtime {

/// What is known where the question is asked. All pointers outlive the call.
struct Facts {
    const WinnerTable* winners = nullptr;
    const DeviceTraits* traits = nullptr;
    const cache::Cache* trials = nullptr;  ///< for the runner-up; may be nullptr
};

/// The report of the bucket from `first` to the dynamic value of `at_last`, before anything is loaded.
[[nodiscard]] BucketReport describe_choice(const Problem& at_last, std::int64_t first, const Choice& choice);

/// `problem` carries the size asked about; `max` is the prepared maximum, which decides the bucket. Throws
/// std::invalid_argument when no candidate of the family can run such a problem on this device.
[[nodiscard]] Explanation explain(const Problem& problem, std::int64_t max, const Facts& facts);

}  // namespace hone::runtime
