// Linear layers behind a norm that they share, variant strips: linear's (linear/strips.cuh). A block's warps
// ask for their tokens' squares before they multiply, and results are multiplied with what follows from
// these. Squares global -> registers -> sums of warps in shared memory, beside those of the products; nothing
// else differs.
#include "linear/strips.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::threads, Tuned::blocks_per_sm)
    shared_norm_linear_strips(HONE_PARAMETERS(shared_norm_linear_strips)) {
    const hone::linear::Tensors tensors{HONE_ARGUMENTS(shared_norm_linear_strips)};
    hone::linear::strips::run(tensors);
}
