// Linear, variant mma_tiles: product.cuh says how.
#include "linear/mma_tiles/product.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::tiles::threads, Tuned::blocks_per_sm)
    linear_mma_tiles(HONE_PARAMETERS(linear_mma_tiles)) {
    const hone::linear::Tensors tensors{HONE_ARGUMENTS(linear_mma_tiles)};
    hone::linear::tiles::run(tensors);
}

extern "C" __global__ void __launch_bounds__(hone::linear::tiles::combine_threads)
    linear_combine(HONE_PARAMETERS(linear_combine)) {
    const hone::linear::Tensors tensors{HONE_ARGUMENTS(linear_combine)};
    hone::linear::tiles::combine(hone::linear::tiles::results_of(tensors));
}

namespace hone::linear::normalize {
inline constexpr int vector = 8;
}

#include "linear/normalize.cuh"
