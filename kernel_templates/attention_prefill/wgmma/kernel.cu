// attention_prefill by tensor cores (sm_90a). START HERE; geometry (sizes), schedule (tunables, tiles),
// producer, consumer, softmax and writer hold a part each.
//
// Data's way: queries, keys and values, global memory -> shared memory (tensor copies, 128-byte swizzle,
// panels of 64 columns) -> tensor cores. Scores stay in registers: they become weights there, which are the
// left operand of the product with the values. Results: registers -> global.
//
// Warpgroup 0 is the producer: one thread issues all copies; where pages are smaller than a stage, up to four
// of its warps do, and each copy stays on a page (boxes.cuh). Keys in pages that copies cannot take, and
// codes, of which two warpgroups make numbers, are copied by all threads (rows.cuh); keys may stay codes,
// which tensor copies bring (codes.cuh). The next `consumers` warpgroups take 64 queries each, and go through
// the tile's blocks of keys from the last to the first. Three things overlap:
//   - in a warpgroup the product with the next keys is issued before that with the present values. Fragments
//     in registers hold a warp until the tensor cores take them, so that the softmax of the next scores
//     begins beside the last of these instructions;
//   - from tile to tile the next tile's first product is under way while the results are stored;
//   - consumers issue in turn (ping-pong), so that one's softmax runs beside the others' products.
// Blocks are persistent: the producer draws tiles (Deal, Order) and hands them on beside the queries.
//
// Barriers, a full and an empty one each:
//   queries   per consumer and query stage; also of the tile itself. Full: the producer's arrival and the
//             bytes; after the last tile only the arrival, for no tile. Empty: the consumer's four warps,
//             after the tile's last product with keys, or when the fragments are in registers.
//   keys, values   per stage, rings of their own. Full: the producer's arrival and the bytes, or arrivals of
//             all of its threads. Empty: all warps of all consumers, after the product that reads them has
//             ended.
// Named barriers: 1 to `consumers` for the turns of ping-pong, 128 threads arriving and 128 waiting; the next
// ones for a consumer's own threads, when they have cleared values or converted queries (queries.cuh).
#include "attention_prefill/wgmma/consumer.cuh"
#include "attention_prefill/wgmma/producer.cuh"
#include "device/places.cuh"

namespace hone::attention_prefill::warpgroup {

__device__ inline void prepare(Layout layout, const Maps& maps) {
    constexpr int half = geometry.barriers() / 2;
    for (int i = 0; i < half; ++i) {
        const bool of_queries = i < consumers * query_stages;
        const bool of_copies = of_queries || (keys_stay_codes && i < consumers * query_stages + stages);
        barrier_init(layout.barrier(i), by_rows && !of_copies ? geometry.producer_threads() : 1);
        barrier_init(layout.barrier(half + i), of_queries ? 4 : 4 * consumers);
    }
    fence_barrier_init();
    prefetch_map(maps.query);
    prefetch_map(maps.key);
    prefetch_map(maps.value);
}

/// What says where queries and keys stand goes to level 2 while the block begins, a part a thread: each of
/// them is read behind the one before, from device memory where nothing has asked for it.
__device__ inline void prefetch_places(const Call& call) {
    const int first = static_cast<int>(threadIdx.x) * prefetched_integers;
    if constexpr (packed) prefetch_integers(call.q_starts, first, call.batch + 1);
    if constexpr (packs_keys) prefetch_integers(call.kv_starts, first, call.batch + 1);
    if constexpr (lengths == Lengths::kv || lengths == Lengths::paged)
        prefetch_integers(call.kv_lengths, first, call.batch);
    if constexpr (paged) {
        const int pages = (call.kv_len + page_size - 1) / page_size;
        prefetch_integers(call.page_table, first, table_entries(call.batch, call.page_table_stride, pages));
    }
}

/// Where pages are looked up, the first tile is found before the warps give registers away.
__device__ inline void produce(Layout layout, const Maps& maps, const Call& call, const Sections& sections) {
    constexpr bool moves = geometry.moves_registers();
    if constexpr (geometry.looks_up()) {
        if constexpr (programmatic) wait_at_start(call);
        Tile first;
        const Order order = Order::begin(call, sections, first);
        if (threadIdx.x % 32 == 0 && threadIdx.x / 32 < geometry.box_warps())
            store_tile(layout.next_tile(), first);
        __syncwarp();
        if constexpr (moves) release_registers<geometry.producer_registers()>();
        if (threadIdx.x < geometry.producer_threads()) Producer(layout, maps, call, order).run();
    } else {
        if constexpr (moves) release_registers<geometry.producer_registers()>();
        if constexpr (programmatic && packed && paged) wait_at_start(call);  // the order reads starts
        if (threadIdx.x < geometry.producer_threads()) Producer(layout, maps, call, sections).run();
    }
}

__device__ inline void run(const Maps& maps, const Call& call, const Sections& sections) {
    extern __shared__ uint8 memory[];
    constexpr uint32 below = Geometry::alignment - 1;
    const Layout layout{(shared_address(memory) + below) & ~below};
    const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);

    prefetch_places(call);
    if (threadIdx.x == 0) prepare(layout, maps);
    __syncthreads();
    if constexpr (programmatic) release_successor();

    if (warpgroup == 0 || (geometry.producers() == 2 && warpgroup == 1)) {
        produce(layout, maps, call, sections);
    } else {
        if constexpr (geometry.moves_registers()) claim_registers<geometry.consumer_registers()>();
        if constexpr (programmatic) wait_at_start(call);
        Consumer(layout, call, warpgroup - geometry.producers()).run();
    }
    if constexpr (programmatic && may_be_beside)
        wait_for_predecessor();  // who follows waits for this one alone
}

}  // namespace hone::attention_prefill::warpgroup

extern "C" __global__ void __launch_bounds__(hone::attention_prefill::warpgroup::geometry.threads(),
                                             Tuned::blocks_per_sm)
    attention_prefill_wgmma(HONE_PARAMETERS(attention_prefill_wgmma)) {
    const hone::attention_prefill::Call call{HONE_ARGUMENTS(attention_prefill_wgmma)};
    hone::attention_prefill::warpgroup::run({q_map, k_map, v_map}, call,
                                            {section_rows, section_heads, section_count});
}
