// Linear, variant mma_tiles: product.cuh says how.
#include "linear/mma_tiles/product.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::tiles::threads, Tuned::blocks_per_sm)
    linear_mma_tiles(const __grid_constant__ hone::linear::Tensors tensors) {
    hone::linear::tiles::run(hone::linear::Tensors(tensors));
}

extern "C" __global__ void __launch_bounds__(hone::linear::tiles::combine_threads)
    linear_combine(const __grid_constant__ hone::linear::Tensors tensors) {
    hone::linear::tiles::combine(hone::linear::tiles::results_of(hone::linear::Tensors(tensors)));
}

namespace hone::linear::normalize {
inline constexpr int vector = 8;
}

#include "linear/normalize.cuh"
