// Linear, variant mma_tiles: mma_tiles.cuh says how.
#include "linear/mma_tiles.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::tiles::threads, Tuned::blocks_per_sm)
    linear_mma_tiles(HONE_LINEAR_PARAMETERS) {
    hone::linear::tiles::run(HONE_LINEAR_TENSORS);
}

extern "C" __global__ void __launch_bounds__(hone::linear::tiles::combine_threads)
    linear_combine(HONE_LINEAR_PARAMETERS) {
    hone::linear::tiles::combine(
        {bias, residual, result, workspace, static_cast<int>(tokens), residual_stride, out_stride});
}

namespace hone::linear::normalize {
inline constexpr int vector = 8;
}

#include "linear/normalize.cuh"
