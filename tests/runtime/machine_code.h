// What kernels' machine code says that neither their text nor their results do. Of sm_90a: instructions of 16
// bytes, the last 23 bits of which say what an instruction waits for and what will wait for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hone::runtime {

/// Arrivals at barriers, in shared memory and named ones, that kernels of the image have, and those that may
/// be issued while earlier loads from shared memory of the same warp are under way.
struct Arrivals {
    int all = 0;
    std::vector<std::string> early;  ///< kernel and place
};

[[nodiscard]] Arrivals arrivals_of(std::span<const std::byte> cubin);

}  // namespace hone::runtime
