// Why a size runs the kernel that it runs: the dispatcher's own choice, put into words. Needs no device, so
// that `hone explain` can also answer for another GPU's traits.
#pragma once

#include "cache/cache.h"
#include "hone/report.h"
#include "runtime/dispatch/choice.h"

namespace hone::runtime {

/// What is known where the question is asked. All pointers outlive the call.
struct Facts {
    const WinnerTable* winners = nullptr;
    const DeviceTraits* traits = nullptr;
    const cache::Cache* trials = nullptr;  ///< for runner-up and ties; may be nullptr
};

/// The report of a bucket from its smallest to its largest problem, before anything is loaded.
[[nodiscard]] BucketReport describe_choice(const Problem& first, const Problem& last, const Choice& choice);

/// `problem` carries the sizes asked about; `largest` the prepared maxima, which decide the bucket. Throws
/// std::invalid_argument when no candidate of the family can run such a problem on this device.
[[nodiscard]] Explanation explain(const Problem& problem, const Problem& largest, const Facts& facts);

}  // namespace hone::runtime
