// Preference of the variants: what their cost models share. No template's hash covers it.
#pragma once

#include "kernel_templates/rope_kv_append/rope_kv_append.h"

namespace hone::rope_kv_append {

/// What the cost model needs of a candidate.
struct Footprint {
    double threads = 0;       ///< threads of the whole launch
    double instructions = 0;  ///< a thread
    double latency_us = 0;    ///< from a block's start to its end
    double slowdown = 1;      ///< factor on the time of the memory's stream
    bool programmatic = false;
};
/// Microseconds of one launch: launch and memory latency, plus bytes over bandwidth and instructions over
/// issue slots, joined by a soft maximum.
[[nodiscard]] double predict_us(const Problem&, const Footprint&, const DeviceTraits&);

}  // namespace hone::rope_kv_append
