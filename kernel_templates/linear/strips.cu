// Linear, variant strips: strips.cuh says how.
#include "linear/strips.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::threads, Tuned::blocks_per_sm)
    linear_strips(HONE_PARAMETERS(linear_strips)) {
    const hone::linear::Tensors tensors{HONE_ARGUMENTS(linear_strips)};
    hone::linear::strips::run(tensors);
}

namespace hone::linear::normalize {
inline constexpr int vector = linear::vector;
}

#include "linear/normalize.cuh"
