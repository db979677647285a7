// Quantized linear, variant ring (sm_90), for few tokens: packed codes pass through a ring of stages in
// shared memory at the speed of memory; x stays in shared memory for all of a block's tiles, or passes
// through the ring too where a block has few tiles and x is long.
//
// Data's way: codes, scales and zero points of groups global -> ring by bulk copies, in the order of the
// tensor cores' left operand; x global -> shared by tensor copies (64 columns x tokens, 128-byte swizzle;
// tokens that are none read as zeros), once for all tiles, or with the weights. Codes shared -> registers,
// less their zero point as 16-bit numbers, exactly -> mma.sync with x (ldmatrix); sums of a group are scaled
// in float32 when it ends. Sums of a tile registers -> inboxes in the shared memory of the cluster's blocks
// (geometry.cuh says who owns what) -> added in order, scaled by row, activated -> global.
//
// Warps: compute_warps multiply, `finishers` make results of what the inbox received, an elected lane of the
// last copies. Nobody meets at a barrier of the block after the start. Barriers:
//   full[stage]      bytes of the copies; empty[stage]: one arrival of each compute warp
//                    and of x's boxes where they pass through the ring
//   x_full[step]     where x stays: bytes of the boxes that a step takes; one phase, waited for in the first
//                    tile
//   inbox_full[2]    all sums of a tile; tile n of a block is in inbox n % 2. In a cluster, bytes of all its
//                    blocks: announced for tile n + 2, if there is one, when tile n was full. A block alone:
//                    one arrival of each thread of the compute warps
//   inbox_read[2]    one arrival of each finishing warp of each block of the cluster, or of each finishing
//                    thread of a block alone: sums of tile n + 2 are sent when tile n was read everywhere.
// Before its first remote write or arrival a warp waits for the cluster's barrier: all blocks have opened
// their inboxes. No block leaves while another may still write there: its finishers have received all that
// it owns, and its compute warps all arrivals that were sent.
#include "quantized_linear/ring/run.cuh"

extern "C" __global__ void __launch_bounds__(hone::quantized_linear::ring::threads, Tuned::blocks_per_sm)
    quantized_linear_ring(HONE_PARAMETERS(quantized_linear_ring)) {
    extern __shared__ unsigned char memory[];
    const unsigned int start = hone::shared_address(memory);
    const hone::quantized_linear::Tensors tensors{HONE_ARGUMENTS(quantized_linear_ring)};
    hone::quantized_linear::ring::run(tensors, x_map, {start + (-start & 1023u)});
}

namespace hone::linear::normalize {
inline constexpr int vector = 8;
}

#include "linear/normalize.cuh"
