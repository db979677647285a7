// Variant mma of attention_prefill: warp tensor cores, online softmax in registers. START HERE; geometry
// (sizes), feeder (ring), softmax (rows), consumer (products) and ../tile (which queries, which keys) hold a
// part each.
//
// A block attends to tile_m queries of one head: each of its warps to 16 or 32 of them, over all keys that
// the tile sees, tile_n at a time. All threads copy.
//
// Data's way: global memory -> ring of stages in shared memory, keys and values in turn, rows padded to an
// odd number of 16-byte chunks -> fragments in registers (ldmatrix, free of bank conflicts), one of 16 x 16
// ahead of the multiplication -> mma.sync. Scores stay in registers, become weights there, and these are the
// left operand of the product with the values: of two neighbouring blocks of 8 columns of the sums, rounded,
// the words are a block of 16 columns of an operand. Queries come from shared memory at each use, or once and
// stay in registers; then the ring takes their place. Results: registers -> shared memory, where the queries
// (or the ring) were -> global, 16 bytes a lane.
//
// Barriers: one a stage, in turn() (feeder.cuh); around the queries' move to registers; and one before
// results are staged in the ring's place. Queries that stay in shared memory are read by their own warp
// alone, which also stages its results there.
#include "attention_prefill/mma/consumer.cuh"

namespace hone::attention_prefill::warp_mma {

/// Queries move through the ring's place into registers before the ring is filled.
__device__ inline void take_queries(Consumer& consumer) {
#if __CUDA_ARCH__ >= 800
    commit_copies();
    wait_for_copies<0>();
#endif
    __syncthreads();
    consumer.take_queries();
    __syncthreads();
}

__device__ inline void run(const Call& call, int section, uint32 base) {
    if constexpr (programmatic) {
        release_successor();
        wait_for_predecessor();
    }
    const Tile tile(call, tile_m, section);
    if (!tile.exists) return;
    // At least one block, so that a tile that sees nothing goes the same way.
    const int last = max(0, tile.end(tile_m) - 1) / tile_n;
    const int first = min(tile.begin() / tile_n, last);

    clear_padding(base);
    copy_queries(base, call, tile);
    Consumer consumer(call, tile, base);
    if constexpr (query_in_registers) take_queries(consumer);
    Items items(call, tile, first, last);
    Feeder feeder(base + geometry.ring_at(), items);
    feeder.start();
#pragma unroll 1
    for (int block = last; block >= first; --block) {
        const bool sees = consumer.sees(block * tile_n);
        const uint32 keys = feeder.turn();
        if (sees) consumer.attend(keys, block * tile_n);
        const uint32 values = feeder.turn();
        if (sees) consumer.multiply_values(values);
    }
    if constexpr (query_in_registers) __syncthreads();
    consumer.store(call, base);
}

}  // namespace hone::attention_prefill::warp_mma

extern "C" __global__ void __launch_bounds__(hone::attention_prefill::warp_mma::threads, Tuned::blocks_per_sm)
    attention_prefill_mma(HONE_PARAMETERS(attention_prefill_mma)) {
    const hone::attention_prefill::Call call{HONE_ARGUMENTS(attention_prefill_mma)};
    extern __shared__ __align__(hone::attention_prefill::warp_mma::Geometry::alignment) hone::uint8 memory[];
    hone::attention_prefill::warp_mma::run(call, section, hone::shared_address(memory));
}
