// The clock that cost models count cycles by.
#pragma once

#include "kernel_templates/device_traits.h"

namespace hone {

/// Cycles in a microsecond at the boost clock, which few busy multiprocessors hold.
[[nodiscard]] inline double boost_cycles_per_us(const DeviceTraits& traits) {
    return 1e-3 * traits.sm_clock_khz;
}

/// Cycles in a microsecond of a GPU that is busy as a whole: an H100 falls from 1,980 to 1,755 MHz.
[[nodiscard]] inline double busy_cycles_per_us(const DeviceTraits& traits) {
    return 0.886 * boost_cycles_per_us(traits);
}

}  // namespace hone
