// Linear, variant gemv: gemv.cuh says how.
#include "linear/gemv.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::threads, Tuned::blocks_per_sm)
    linear_gemv(HONE_PARAMETERS(linear_gemv)) {
    const hone::linear::Tensors tensors{HONE_ARGUMENTS(linear_gemv)};
    hone::linear::gemv::run(tensors);
}

namespace hone::linear::normalize {
inline constexpr int vector = linear::access();
}

#include "linear/normalize.cuh"
