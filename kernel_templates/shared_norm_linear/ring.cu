// Linear layers that share a norm, variant ring: linear's (linear/ring/kernel.cu). In front of a norm its
// finishing warps write, beside results, what is behind the norm reads (linear/shared_norm.cuh); behind one
// they work out tokens' factors, which sums are multiplied with, while the warpgroups multiply. Squares
// global -> registers -> factors in shared memory; nothing else differs.
#include "linear/ring/run.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::ring::geometry.threads(), 1)
    shared_norm_linear_ring(HONE_PARAMETERS(shared_norm_linear_ring)) {
    extern __shared__ unsigned char memory[];
    const unsigned int skipped = -hone::shared_address(memory) & 1023u;
    const hone::linear::Tensors tensors{HONE_ARGUMENTS(shared_norm_linear_ring)};
    hone::linear::ring::run(tensors, {weight_map, up_map, x_map},
                            {memory + skipped, hone::shared_address(memory) + skipped});
}
