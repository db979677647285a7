// Preference of variant wgmma: how long a call takes. No template's hash covers it.
#pragma once

#include "kernel_templates/attention_prefill/rank.h"
#include "kernel_templates/attention_prefill/wgmma/plan.h"

namespace hone::attention_prefill::warpgroup {

/// Modelled time, see Variant::predict_us.
[[nodiscard]] double predict(const AttentionProblem&, const WgmmaConfig&, const DeviceTraits&);

}  // namespace hone::attention_prefill::warpgroup
