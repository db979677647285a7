// Preference of the variants: how long a call takes. No template's hash covers it.
#pragma once

#include "kernel_templates/embedding/embedding.h"

namespace hone::embedding {

/// What the cost model needs of a candidate.
struct Cost {
    double packets = 1;  ///< of a lane
    double vector = 1;   ///< elements a packet
    double lanes = 1;    ///< that share a row
    bool programmatic = false;
};
/// Modelled microseconds: a launch, one look-up after the other, and bytes over bandwidth or packets over
/// issue slots, whichever takes longer.
[[nodiscard]] double predict_us(const EmbeddingProblem&, const Cost&, const DeviceTraits&);

}  // namespace hone::embedding
