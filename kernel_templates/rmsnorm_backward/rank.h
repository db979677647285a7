// Preference of the variants: how long a call takes. No template's hash covers it.
#pragma once

#include "kernel_templates/norm/rules.h"
#include "kernel_templates/rmsnorm_backward/backward.h"

namespace hone::rmsnorm_backward {

/// What the cost model needs of a candidate.
struct Cost {
    double read_passes = 1;      ///< times that dy, x and dsum are read
    double bytes_in_flight = 0;  ///< loads that one multiprocessor keeps in flight
    double wait_us = 0;          ///< between two rounds of loads, beyond the memory's latency
    double instructions = 14;    ///< an element
    double partial_rows = 0;     ///< float32 rows of dweight that are written and read again
    double launches = 2;
    bool programmatic = false;
};
/// Modelled microseconds: launches, plus the largest of three rates - bytes over bandwidth, bytes over what
/// the loads in flight can draw, instructions over issue slots - joined by a soft maximum, plus the partial
/// rows. Constants are those of norm::predict_us(); they order candidates, and the race decides.
[[nodiscard]] double predict_us(const BackwardProblem&, const Cost&, const DeviceTraits&);

}  // namespace hone::rmsnorm_backward
