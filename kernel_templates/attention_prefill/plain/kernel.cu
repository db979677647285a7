// Variant plain of attention_prefill: any type, any head_dim, any strides, any chip; CUDA cores alone. START
// HERE; geometry (sizes), feeder (keys and values), consumer (products) and ../tile (which queries) hold a
// part each.
//
// A block attends to tile_m queries of one head, tile_n keys at a time. Of its rows two neighbours belong to
// a warp at a time, 16 lanes to each: a thread has thread_m rows, and of their scores every 16th.
//
// Data's way, everything as floats: queries -> shared memory, once. Keys, some columns a step, then values,
// some rows a step: global memory -> registers, one step ahead -> one of two buffers in shared memory ->
// registers, multiplied there. Weights: registers -> shared memory -> the same 16 lanes, four keys at a time.
// Results: registers -> global.
//
// Barriers: one a step, in turn(): a buffer is written again only after the barrier in between. Weights stay
// in their warp.
#include "attention_prefill/plain/consumer.cuh"

namespace hone::attention_prefill::cuda_cores {

__device__ inline void run(const Call& call, int section, float* memory) {
    if constexpr (programmatic) {
        release_successor();
        wait_for_predecessor();
    }
    const Tile tile(call, tile_m, section);
    if (!tile.exists) return;
    // At least one block, so that a tile that sees nothing goes the same way.
    const int last = max(0, tile.end(tile_m) - 1) / tile_n;
    const int first = min(tile.begin() / tile_n, last);

    copy_queries(memory, call, tile);
    Feeder feeder(call, tile, last, memory + geometry.buffers_at());
    Consumer consumer(call, tile, memory);
    feeder.start();
#pragma unroll 1
    for (int block = last; block >= first; --block) {
        const bool sees = consumer.sees(block * tile_n);
        consumer.clear_scores();
#pragma unroll 1
        for (int step = 0; step < key_steps; ++step) {
            const float* keys = feeder.turn();
            if (sees) consumer.multiply_keys(keys, step);
        }
        if (sees) consumer.weigh(block * tile_n);
#pragma unroll 1
        for (int step = 0; step < value_steps; ++step) {
            const float* values = feeder.turn();
            if (sees) consumer.multiply_values(values, step);
        }
    }
    consumer.store(call, tile);
}

}  // namespace hone::attention_prefill::cuda_cores

extern "C" __global__ void __launch_bounds__(hone::attention_prefill::cuda_cores::threads, 1)
    attention_prefill_plain(HONE_PARAMETERS(attention_prefill_plain)) {
    const hone::attention_prefill::Call call{HONE_ARGUMENTS(attention_prefill_plain)};
    extern __shared__ __align__(16) hone::uint8 memory[];
    hone::attention_prefill::cuda_cores::run(call, section, reinterpret_cast<float*>(memory));
}
