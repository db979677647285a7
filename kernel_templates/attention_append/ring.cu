// Attention of the newest token, variant ring: that of attention_decode (attention_decode/ring/kernel.cu),
// whose producers begin before the kernel in front has ended. What is new of a token comes by newest.cuh.
#include "attention_append/newest.cuh"
#include "attention_decode/ring/run.cuh"

extern "C" __global__ void __launch_bounds__(hone::attention_decode::ring::threads, Tuned::blocks_per_sm)
    attention_append_ring(HONE_PARAMETERS(attention_append_ring)) {
    const hone::attention_decode::Tensors tensors{HONE_ARGUMENTS(attention_append_ring)};
    extern __shared__ unsigned char memory[];
    const unsigned int skew = -hone::shared_address(memory) & 1023u;
    hone::attention_decode::ring::run<hone::attention_decode::ring::Arriving>(
        tensors, *reinterpret_cast<hone::attention_decode::ring::Memory*>(memory + skew), k_map, v_map);
}
