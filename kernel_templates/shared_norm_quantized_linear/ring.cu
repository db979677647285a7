// Quantized linear layers that share a norm, variant ring: quantized_linear's
// (quantized_linear/ring/kernel.cu). In front of a norm its finishing warps write, beside results, what is
// behind the norm reads (linear/shared_norm.cuh); behind one they work out tokens' factors first, which sums
// are multiplied with, while the others multiply. Squares global -> registers -> factors in shared memory;
// nothing else differs.
#include "quantized_linear/ring/run.cuh"

extern "C" __global__ void __launch_bounds__(hone::quantized_linear::ring::threads, Tuned::blocks_per_sm)
    shared_norm_quantized_linear_ring(HONE_PARAMETERS(shared_norm_quantized_linear_ring)) {
    extern __shared__ unsigned char memory[];
    const unsigned int start = hone::shared_address(memory);
    const hone::quantized_linear::Tensors tensors{HONE_ARGUMENTS(shared_norm_quantized_linear_ring)};
    hone::quantized_linear::ring::run(tensors, x_map, {start + (-start & 1023u)});
}
