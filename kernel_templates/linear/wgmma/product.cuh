// Linear by tensor cores (sm_90a). START HERE; geometry (sizes), schedule (who works on what), tile
// (tunables), producer, consumer, writer, partials and ../results hold a part each.
//
// Data's way: global memory -> ring of stages in shared memory (tensor copies, 128-byte swizzle) -> tensor
// cores -> registers -> shared memory (stmatrix) -> global (tensor store). Warpgroup 0 is the producer: one
// thread issues all copies. Warpgroups 1 to `consumers` multiply: they share a tile (each takes rows of it),
// or with ping_pong take whole tiles in turn, so that one stores while the other multiplies. Blocks are
// persistent: each walks over the tiles that the schedule gives it, with tail_split also over a part of one.
//
// The left operand has the tile's rows (64 a wgmma), the right one its columns (wgmma's n). Of three blocks
// of 64 rows two consumers take one each, and half of the columns of the middle one. Left is x and right the
// weight; `swapped` exchanges them for few tokens, and the result is transposed on its way out. A gated
// weight tile is half gate rows, half up rows: the two products of an element meet in one thread. Of a tile
// that has fewer tokens than others as many rows are copied as there are (producer.cuh).
//
// Barriers, one pair a stage:
//   full[s]   one arrival (the producer, announcing the stage's bytes) and those bytes. Consumers wait for
//             it.
//   empty[s]  an arrival from each consumer warp. The producer waits for it before it fills s again.
//
// With cluster_k the blocks of a cluster split `in` of one tile: after the last multiplication (cluster
// barrier: all rings are free) each sends every other its share of the partial sums, into the memory of the
// rings; after a second cluster barrier each adds its share in order of rank and stores it. One tile a
// cluster.
//
// With staged results, too, two blocks of two warpgroups join their sums early (Geometry::joins_early): block
// r adds up the sums of warpgroup r, the other one multiplies its last steps first and sends its sums to the
// other block while those of r are multiplied. Two more barriers in each block:
//   steps_read  an arrival from each consumer warp of the other block, which has read all steps but the last:
//               the stages of the steps before may be written. The warpgroup that sends waits for it.
//   sums        the bytes of the other block's sums. The warpgroup that adds them up waits for it.
// No block sends or arrives before the cluster's barrier says that the other has opened these, nor leaves
// before it has all that the other sends.
//
// With staged = 2 (Geometry::has_inbox) the shares come asynchronously into memory beside the ring, which
// takes stages from it: nobody waits until rings are free, and one more barrier in each block, `sums`, counts
// the bytes. So the cluster meets at its start alone.
//
// With tail_split = 2 (Geometry::tail_pairs) blocks walk in clusters of two over whole tiles, and share the
// tiles of a last round that leaves half of them idle: each multiplies half of the steps, and both add up
// half of the results, whose parts come into the ring: `steps_read` (the other block's warps have read all of
// it) and `sums` say when, as above. Unlike parts that go through the workspace nothing waits for a block
// that may not have started: clusters start together.
//
// With a norm that is shared (sharing.cuh) three warps of warpgroup 0 that have nothing to copy work out what
// the rows of x are multiplied with, and one more barrier in each block, `factors`, says that all are there.
//
// Programmatic launch: the block starts while the kernel before still runs, and fills its ring with weights;
// x, the workspace and the results wait for that kernel's end (with programmatic = 3 all weights but the
// first few wait, too: x would queue behind them). Its own successor it lets start at once, or when its last
// loads are under way (releases_late): where the successor finds room beside it, memory then goes over from
// one kernel's loads to the next one's without a pause.
#pragma once

#include "linear/wgmma/consumer.cuh"
#include "linear/wgmma/producer.cuh"
#include "linear/wgmma/tile.cuh"

namespace hone::linear::gemm {

/// Registers of a producer's and a consumer's thread; together the file's 64 Ki, in steps of 8.
inline constexpr bool moves_registers = geometry.blocks_per_sm == 1 && consumers >= 2;
inline constexpr int producer_registers = consumers == 3 ? 32 : takes_squares() ? 56 : 40;
inline constexpr int consumer_registers = consumers == 3 ? 160 : takes_squares() ? 224 : 232;

__device__ inline void prepare(uint32 shared, const Maps& maps, int tokens) {
    for (int stage = 0; stage < stages; ++stage) {
        barrier_init(full_barrier(shared, stage), 1);
        barrier_init(empty_barrier(shared, stage), geometry.sharers() * 4);
    }
    if constexpr (geometry.joins_early()) {
        barrier_init(steps_read_barrier(shared), consumers * 4);
        barrier_init(sums_barrier(shared), 1);
        barrier_arrive_expecting(sums_barrier(shared), geometry.fragments() * Geometry::sent_bytes());
    }
    if constexpr (geometry.has_inbox() || geometry.tail_pairs) {
        if constexpr (geometry.tail_pairs) barrier_init(steps_read_barrier(shared), consumers * 4);
        barrier_init(sums_barrier(shared), 1);
        barrier_arrive_expecting(sums_barrier(shared),
                                 geometry.awaited_bytes(static_cast<int>(cluster_rank())));
    }
    if constexpr (takes_squares()) open_factors();
    fence_barrier_init();
    prefetch_map(tokens < geometry.x_box() ? maps.x_rest : maps.x);
    prefetch_map(maps.weight);
    if (gated) prefetch_map(maps.up);
    if (geometry.staged != 0) prefetch_map(maps.result);
}

/// `weights` fills the weights' part of a stage, as MatrixWeights; `product` multiplies, as ElementProduct.
template <class Weights, class Product>
__device__ inline void run(const Maps& maps, const GivenResults& results, const Weights& weights,
                           const Product& product) {
    extern __shared__ uint8 memory[];
    constexpr uint32 below = Geometry::alignment - 1;
    const uint32 shared = (shared_address(memory) + below) & ~below;
    const int rank = cluster_k == 1 && !geometry.tail_pairs ? 0 : static_cast<int>(cluster_rank());
    const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
    const Schedule schedule(tiling, results.tokens, gridDim.x / cluster_k, blockIdx.x / cluster_k, rank);

    if (threadIdx.x == 0) prepare(shared, maps, results.tokens);
    __syncthreads();
    if constexpr (geometry.meets_early()) cluster_arrive();
    if constexpr (programmatic && !releases_late) release_successor();

    if (warpgroup == 0) {
        if constexpr (moves_registers) release_registers<producer_registers>();
        if (threadIdx.x == 0) Producer<Weights>(shared, maps, weights, results.tokens).run(schedule);
        if constexpr (takes_squares()) {
            if (threadIdx.x >= 32) {
                if constexpr (programmatic) wait_for_predecessor();
                leave_factors(results, threadIdx.x / 32 - 1);
            }
        }
        __syncwarp();
        if constexpr (geometry.meets_early()) {
            cluster_wait();
        } else if constexpr (cluster_k > 1) {  // the two meetings of Writer::store_shared
            meet_cluster();
            meet_cluster();
        }
    } else {
        if constexpr (moves_registers) claim_registers<consumer_registers>();
        if constexpr (programmatic) wait_for_predecessor();
        Consumer<Product>(shared, maps, results, product, warpgroup - 1).run(schedule, rank);
    }
}

}  // namespace hone::linear::gemm
