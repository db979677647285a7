// What a block of variant ring does (kernel.cu).
#pragma once

#include "attention_decode/combine.cuh"
#include "attention_decode/ring/consumer.cuh"
#include "attention_decode/ring/producer.cuh"
#include "device/places.cuh"

namespace hone::attention_decode::ring {

/// What says where keys stand goes to level 2 while the call ahead ends, each thread of all blocks asking for
/// a part: each of them is read behind the one before, from device memory where nothing has asked for it. Not
/// a table that has more parts: most of it would be room that sequences have.
__device__ inline void prefetch_places(const Tensors& tensors) {
    const int64 first = (static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x) * prefetched_integers;
    if constexpr (packed) prefetch_integers(tensors.q_starts, first, tensors.batch + 1);
    if constexpr (has_lengths) prefetch_integers(tensors.kv_lengths, first, tensors.batch);
    if constexpr (paged) {
        const int64 pages = (tensors.kv_len + page_size - 1) / page_size;
        const int64 entries = table_entries(tensors.batch, tensors.page_table_stride, pages);
        if (entries <= static_cast<int64>(gridDim.x) * blockDim.x * prefetched_integers)
            prefetch_integers(tensors.page_table, first, entries);
    }
}

/// Newest: Stored, or what brings the newest token's key and value (attention_append/newest.cuh). Then old
/// ones are read before the predecessor has ended.
template <class Newest>
__device__ inline void run(const Tensors& tensors, Memory& memory, const TensorMap& k_map,
                           const TensorMap& v_map) {
    if constexpr (!Newest::arrives && (has_lengths || paged)) prefetch_places(tensors);
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < stages; ++stage) {
            barrier_init(shared_address(&memory.full[0][stage]), copy_engine ? 1 : 32);
            barrier_init(shared_address(&memory.full[1][stage]), copy_engine ? 1 : 32);
            barrier_init(shared_address(&memory.empty[stage]), 1);
        }
        fence_barrier_init();
        if constexpr (cluster > 1) open_inbox(memory.join);
    }
    __syncthreads();
    if constexpr (cluster > 1) cluster_arrive();
    if constexpr (!Newest::arrives) {
        if constexpr (Tuned::ahead != 0 && !copy_engine) {
            if (threadIdx.x >= compute_threads) ask_ahead(tensors);
        }
        wait_for_predecessor();
        fence_async_proxy_global();
        if constexpr (Tuned::ahead == 0) release_successor();
    }
    if (threadIdx.x < compute_threads) {
        compute<Newest>(tensors, memory);
    } else {
        produce(tensors, memory, k_map, v_map);
        if constexpr (cluster > 1) cluster_wait();
    }
}

}  // namespace hone::attention_decode::ring
