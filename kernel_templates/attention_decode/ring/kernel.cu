// Attention decode, variant ring (sm_90): producers copy units of the cache into a ring of stages in shared
// memory; compute warps take the stages in turn, each with its own online softmax, and meet at a fragment's
// end (join.cuh). Producers run ahead over the ends of fragments: the memory is never idle.
//
// Data's way: K and V global -> shared by the copy engine (tensor maps; one warp) or by cp.async (any page
// size; `producers` warps that take units in turn), in panels [unit tokens][128 bytes] with the 128-byte
// swizzle -> ldmatrix, codes of fp8 become 16-bit numbers -> tensor cores. Sums registers -> shared ->
// global.
//
// Barriers of a stage: full[0] (K) and full[1] (V), bytes of the copy engine, or the arrivals of a producer
// warp's lanes when their copies have landed; and empty, one arrival of the warp that took the stage. Unit
// number s of the block, counted over its fragments, is in stage s % stages, round s / stages; empty has no
// barrier to wait for in the first round (parity 1). Within a fragment a stage is always taken by the same
// warp; between fragments all units of the earlier one have been taken. Compute warps meet at named barrier
// 1. In a cluster, all blocks arrive at its barrier when their inboxes are open.
//
// Tokens that nobody may see: the copy engine brings what is there, scores are masked and V's words zeroed;
// pages without a visible token are not touched. cp.async moves to the nearest visible token instead.
#include "attention_decode/ring/run.cuh"

extern "C" __global__ void __launch_bounds__(hone::attention_decode::ring::threads, Tuned::blocks_per_sm)
    attention_decode_ring(HONE_PARAMETERS(attention_decode_ring)) {
    const hone::attention_decode::Tensors tensors{HONE_ARGUMENTS(attention_decode_ring)};
    extern __shared__ unsigned char memory[];
    const unsigned int skew = -hone::shared_address(memory) & 1023u;
    hone::attention_decode::ring::run<hone::attention_decode::ring::Stored>(
        tensors, *reinterpret_cast<hone::attention_decode::ring::Memory*>(memory + skew), k_map, v_map);
}
