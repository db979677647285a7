// What a block of variant ring does (kernel.cu).
#pragma once

#include "attention_decode/combine.cuh"
#include "attention_decode/ring/consumer.cuh"
#include "attention_decode/ring/producer.cuh"

namespace hone::attention_decode::ring {

/// Newest: Stored, or what brings the newest token's key and value (attention_append/newest.cuh). Then old
/// ones are read before the predecessor has ended.
template <class Newest>
__device__ inline void run(const Tensors& tensors, Memory& memory, const TensorMap& k_map,
                           const TensorMap& v_map) {
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
