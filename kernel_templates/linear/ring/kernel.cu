// Linear, variant ring (sm_90a), for few tokens: weights and x pass through a ring of stages that takes
// nearly all of a multiprocessor's shared memory, and the tensor cores read them there. No warp moves a byte
// of them, so that nothing but memory decides. Tiles have as many rows as give all multiprocessors even
// shares.
//
// Data's way: weights global -> ring by tensor copies (a tile's rows x 64 columns, 128-byte swizzle), the
// first before anything else and before the wait for the kernel that writes x; x the same way, its columns in
// the stage of the weights'. Both -> wgmma, weights left, tokens on the right. Sums float32 registers -> one
// of two inboxes in shared memory, of the block or of the blocks of its cluster (geometry.cuh says who owns
// what) -> added up in order, activated by the finishing warps -> global.
//
// Warps: `consumers` warpgroups multiply, taking the stages in turns; of the last warpgroup an elected lane
// of the first warp copies, three warps finish. Barriers:
//   full[stage]     bytes of the copies, and behind a norm an arrival of the warp that brought x
//                   (stager.cuh); empty[stage]: one arrival of each warp of the warpgroup whose stage
//                   it is: the same in every round, since stages are a multiple of warpgroups
//   sums_full[2]    all sums of a tile; tile n of a block is in inbox n % 2. In a cluster, bytes of all its
//                   blocks: announced for tile n + 2, if there is one, when tile n was full. A block alone:
//                   one arrival of each thread that multiplies
//   sums_read[2]    one arrival of each finishing warp of each block of the cluster, or of each finishing
//                   thread of a block alone: sums of tile n + 2 are sent when tile n was read everywhere
// Before its first remote write or arrival a warp waits for the cluster's barrier: all blocks have opened
// their inboxes. No block leaves while another may still write there: its finishers have received all that
// it owns, and its warpgroups all arrivals that were sent.
#include "linear/ring/run.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::ring::geometry.threads(), 1)
    linear_ring(HONE_PARAMETERS(linear_ring)) {
    extern __shared__ unsigned char memory[];
    const unsigned int skipped = -hone::shared_address(memory) & 1023u;
    const hone::linear::Tensors tensors{HONE_ARGUMENTS(linear_ring)};
    hone::linear::ring::run(tensors, {weight_map, up_map, x_map},
                            {memory + skipped, hone::shared_address(memory) + skipped});
}

namespace hone::linear::normalize {
inline constexpr int vector = 8;
}

#include "linear/normalize.cuh"
