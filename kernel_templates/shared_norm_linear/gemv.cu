// Linear layers behind a norm that they share, variant gemv: linear's (linear/gemv.cuh). A block's warps ask
// for their tokens' squares before they multiply, and results are multiplied with what follows from these.
// Squares global -> registers -> sums of warps in shared memory, beside those of the products; nothing else
// differs.
#include "linear/gemv.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::threads, Tuned::blocks_per_sm)
    shared_norm_linear_gemv(HONE_PARAMETERS(shared_norm_linear_gemv)) {
    const hone::linear::Tensors tensors{HONE_ARGUMENTS(shared_norm_linear_gemv)};
    hone::linear::gemv::run(tensors);
}
