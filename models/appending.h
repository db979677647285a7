// Whether a step's attention appends, too: for the decoder, which runs it, and for the tuner, which lists
// what steps call.
#pragma once

#include <optional>

#include "kernel_templates/device_traits.h"
#include "kernel_templates/family.h"

namespace hone::models {

/// Whether one kernel does attention_append at these sizes, faster than its parts one after the other. By the
/// fallback, not by what is chosen: a step has the same launches before and behind its tuning.
[[nodiscard]] inline bool appends_in_one_kernel(const Problem& problem, const DeviceTraits& device) {
    const std::optional<Candidate> usual = fallback(problem, device);
    return usual && usual->variant->name != "plain";
}

}  // namespace hone::models
