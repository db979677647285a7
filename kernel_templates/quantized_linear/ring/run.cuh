// What the warps of variant ring (kernel.cu) do, for its kernel and that of shared_norm_quantized_linear.
#pragma once

#include "device/elect.cuh"
#include "quantized_linear/ring/consumer.cuh"
#include "quantized_linear/ring/finisher.cuh"
#include "quantized_linear/ring/producer.cuh"

namespace hone::quantized_linear::ring {

__device__ inline void initialize(Memory memory, const Schedule& schedule) {
    for (int stage = 0; stage < stages; ++stage) {
        barrier_init(memory.full(stage), 1);
        barrier_init(memory.empty(stage), compute_warps);
    }
    for (int step = 0; !x_streams && step < geometry.most_steps(); ++step)
        barrier_init(memory.x_full(step), 1);
    for (int number = 0; number < 2; ++number) Inbox(memory, number).initialize();
    fence_barrier_init();
    for (int number = 0; number < min(2, schedule.tile_count); ++number)
        Inbox(memory, number).open(schedule.rank);
}

__device__ inline void run(const Tensors& tensors, const TensorMap& x_map, Memory memory) {
    const Schedule schedule;
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
    if (threadIdx.x == 0) initialize(memory, schedule);
    __syncthreads();
    if constexpr (has_cluster) cluster_arrive();
    release_successor();
    if (warp < compute_warps) {
        Consumer(tensors, memory, schedule).run();
    } else if (warp < compute_warps + finishers) {
        wait_for_predecessor();
        Finisher(tensors, memory, schedule).run();
    } else {
        if (elect()) Producer(tensors, x_map, memory, schedule).run();
        __syncwarp();
        if constexpr (has_cluster) cluster_wait();
    }
}

}  // namespace hone::quantized_linear::ring
