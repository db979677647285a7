// attention_prefill of fp32 tensors by tensor cores (sm_90a). START HERE; geometry (sizes), tile (tunables,
// the block's tile, addresses), splitter, softmax and consumer hold a part each.
//
// A float is the sum of two tf32 numbers, up to its last bit or two, so a product of floats is that of three
// pairs: high * high + high * low + low * high. Left operands, queries and weights, are split by rounding to
// nearest, so that the low part has either sign and nothing that is left out adds up; of keys and values the
// tensor cores take the upper 19 bits by themselves, and low is the rest.
//
// Data's way. Queries: global -> shared memory (asynchronous copies, once a tile) -> registers (ldmatrix,
// for every block of keys anew: all of them, split, would not fit) -> tensor cores. Keys and values: global
// -> registers of the splitters -> two parts in shared memory, in K-major panels of 32 columns in the
// 128-byte swizzle -> tensor cores. The columns of values' panels are keys, for tf32 operands have no other
// layout: a splitter's thread loads four keys of one column and stores them as one chunk. Scores stay in
// registers and become weights there, the left operand of the product with the values; each lane holds
// neighbouring keys where the operand wants keys four apart, and so values' keys are stored in the order 0 2
// 4 6 1 3 5 7 of eight. Results: registers -> global.
//
// The tensor cores do not round a sum, they cut it off after every instruction. So sums start from zero for
// every block of keys, and the CUDA cores add the blocks up while they rescale them, with rounding; within a
// block small products have sums of their own (scores) or come first (results).
//
// Warpgroup 0 splits. Warpgroups 1 to `consumers` take 64 queries each of the block's one tile, and go
// through its keys from the last to the first; one's softmax runs beside the other's products. Blocks that
// are masked for a warpgroup as a whole it leaves to the others.
//
// Barriers, a full and an empty one for each stage of keys and of values:
//   full   all warps of the splitters, after the fence that shows their writes to the tensor cores.
//   empty  all warps of all consumers, after the products that read the stage have ended.
// Named barriers 1 to `consumers`: 128 threads, a warpgroup's queries are there.
//
// Floors of a block of n keys for 128 queries and head_dim 128, cycles of a multiprocessor: tensor cores 96 n
// (1024 products of tf32 a cycle). Shared memory's port, 128 bytes a cycle: the instructions read 48 n of
// keys and values, consumers 16 n * 32 / n of queries, splitters write 16 n.
#include "attention_prefill/wgmma_tf32/consumer.cuh"
#include "attention_prefill/wgmma_tf32/splitter.cuh"

namespace hone::attention_prefill::tf32 {

__device__ inline void prepare(Layout layout) {
    for (int stage = 0; stage < stages; ++stage) {
        for (const uint32 full : {layout.full_key(stage), layout.full_value(stage)}) {
            barrier_init(full, 4);
            barrier_init(Layout::empty(full), 4 * consumers);
        }
    }
    fence_barrier_init();
}

__device__ inline void run(const Call& call) {
    extern __shared__ uint8 memory[];
    constexpr uint32 below = Geometry::alignment - 1;
    const Layout layout{(shared_address(memory) + below) & ~below};
    const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);

    if (threadIdx.x == 0) prepare(layout);
    if constexpr (programmatic) {
        release_successor();
        wait_for_predecessor();
    }
    const Tile tile = tile_of_block(call);
    if (tile.row >= tile.sequence.q_len) return;
    __syncthreads();

    if (warpgroup == 0) {
        if constexpr (geometry.moves_registers()) release_registers<geometry.splitter_registers()>();
        Splitter(layout, call, tile).run();
    } else {
        if constexpr (geometry.moves_registers()) claim_registers<geometry.consumer_registers()>();
        Consumer(layout, call, tile, warpgroup - 1).run();
    }
}

}  // namespace hone::attention_prefill::tf32

extern "C" __global__ void __launch_bounds__(hone::attention_prefill::tf32::geometry.threads(), 1)
    attention_prefill_wgmma_tf32(HONE_PARAMETERS(attention_prefill_wgmma_tf32)) {
    const hone::attention_prefill::Call call{HONE_ARGUMENTS(attention_prefill_wgmma_tf32)};
    hone::attention_prefill::tf32::run(call);
}
