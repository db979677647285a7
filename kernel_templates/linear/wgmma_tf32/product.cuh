// Linear of fp32 tensors by tensor cores (sm_90a). START HERE; geometry (sizes), tile (tunables, barriers,
// schedule), producer, consumer and writer hold a part each.
//
// A float is the sum of two tf32 numbers, up to its last bit or two, so a product of floats is that of three
// pairs: high * high + high * low + low * high. What is left out, low * low, is 2^-24 of the product on
// average. Left numbers are split by rounding to nearest, so that the low part has either sign and nothing
// that is left out adds up; of right ones the tensor cores take the upper 19 bits by themselves, and low is
// the rest.
//
// Data's way: global memory -> ring of stages in shared memory (tensor copies, 128-byte swizzle). The right
// operand: three warps read it and write its low part beside it; the tensor cores read both. The left
// operand: each consumer reads the 64 rows that it multiplies into registers (ldmatrix, free of bank
// conflicts) and splits them there -> tensor cores -> partial sums in registers -> sums in registers ->
// global.
//
// The tensor cores do not round a sum, they cut it off after every instruction: over a row of x that would
// add up to 4e-5 of the result. So they only ever sum over one stage (32 columns, 12 instructions), from
// zero, and the CUDA cores add that to the sums, rounding to nearest: 6 % of the tensor cores' time in issue
// slots.
//
// Warpgroup 0: thread 0 issues all copies, warps 1 to 3 split. Warpgroups 1 to `consumers` share a tile, each
// takes rows of it. Blocks are persistent: each walks over tiles block, block + blocks, ... Left is x and
// right the weight; `swapped` exchanges them for few tokens. A gated weight tile is half gate rows, half up
// rows: the two products of an element meet in one thread.
//
// Barriers, three a stage:
//   full[s]   one arrival (the producer, announcing the stage's bytes) and those bytes. All others wait for
//   it. split[s]  an arrival of each splitting warp, after the fence that shows its writes to the tensor
//   cores.
//             Consumers wait for it.
//   empty[s]  an arrival from each consumer warp. The producer waits for it before it fills s again. By then
//             the splitters are done with s, too: the consumers had waited for them.
//
// Floors of a stage, cycles of a multiprocessor: tensor cores 3 m n / 32 (1024 products of tf32 a cycle). The
// port of shared memory, 128 bytes a cycle: each instruction reads n rows x 32 bytes, half of the tensor
// cores' time at any size; copies write m + n rows of 128 bytes, consumers read m of them, splitters read and
// write n: 2 m + 3 n on top. 256 x 128: 3072 against 2432; 128 x 192: 2304 and 1984; 128 x 128: 1536 and
// 1408.
//
// With cluster_k the blocks of a cluster split `in` of one tile: after the last multiplication (cluster
// barrier: all rings are free) each sends every other its share of the partial sums, into the memory of the
// rings; after a second cluster barrier each adds its share in order of rank and stores it. One tile a
// cluster.
#pragma once

#include "device/warpgroup.cuh"
#include "linear/wgmma_tf32/consumer.cuh"
#include "linear/wgmma_tf32/producer.cuh"

namespace hone::linear::tf32 {

__device__ inline void prepare(uint32 shared, const Maps& maps) {
    for (int stage = 0; stage < stages; ++stage) {
        barrier_init(full_barrier(shared, stage), 1);
        barrier_init(split_barrier(shared, stage), splitter_warps);
        barrier_init(empty_barrier(shared, stage), consumers * 4);
    }
    fence_barrier_init();
    prefetch_map(maps.x);
    prefetch_map(maps.weight);
    if (gated) prefetch_map(maps.up);
}

__device__ inline void run(const Maps& maps, const Tensors& tensors) {
    extern __shared__ uint8 memory[];
    constexpr uint32 below = Geometry::alignment - 1;
    const uint32 shared = (shared_address(memory) + below) & ~below;
    const int rank = cluster_k == 1 ? 0 : static_cast<int>(cluster_rank());
    const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
    const Schedule schedule(static_cast<int>(tensors.tokens));

    if (threadIdx.x == 0) prepare(shared, maps);
    __syncthreads();
    if constexpr (programmatic) release_successor();

    if (warpgroup == 0) {
        if constexpr (geometry.moves_registers()) release_registers<geometry.producer_registers()>();
        if (threadIdx.x >= 32) {
            Splitter(shared).run(schedule, rank);
        } else if (threadIdx.x == 0) {
            Producer(shared, maps).run(schedule, rank);
        }
        __syncwarp();
        if constexpr (cluster_k > 1) {  // the two meetings of Writer::store_shared
            meet_cluster();
            meet_cluster();
        }
    } else {
        if constexpr (geometry.moves_registers()) claim_registers<geometry.consumer_registers()>();
        if constexpr (programmatic) wait_for_predecessor();
        Consumer(shared, tensors, warpgroup - 1).run(schedule, rank);
    }
}

}  // namespace hone::linear::tf32
