// A warp of each block that comes late wherever it waits for a barrier in shared memory.
#pragma once

#include <fmt/format.h>

#include <string>

namespace hone::test {

/// For the constants of an image: warp number `warp` of each block looks at such a barrier 2 us after it came
/// there. A barrier tells two phases apart: a warp without which the phase behind the one that it waits for
/// can end, too, may find both over, and waits for ever.
inline std::string late_looks(int warp) {
    return fmt::format(R"(
#if __CUDA_ARCH__ >= 900
#include "device/cluster_barrier.cuh"
namespace hone {{
__device__ inline void come_late() {{
    if (threadIdx.x / 32 == {}) __nanosleep(2000);
}}
}}  // namespace hone
#define barrier_wait(barrier, parity) (hone::come_late(), barrier_wait(barrier, parity))
#define barrier_wait_cluster(barrier, parity) (hone::come_late(), barrier_wait_cluster(barrier, parity))
#endif
)",
                       warp);
}

}  // namespace hone::test
