// What the warps of variant ring (kernel.cu) do, for its kernel and that of shared_norm_linear.
#pragma once

#include "device/elect.cuh"
#include "linear/ring/consumer.cuh"
#include "linear/ring/finisher.cuh"
#include "linear/ring/producer.cuh"

namespace hone::linear::ring {

__device__ inline void initialize(Memory memory, const Schedule& schedule) {
    for (int stage = 0; stage < stages; ++stage) {
        barrier_init(memory.full(stage), folds_norm ? 2 : 1);
        barrier_init(memory.empty(stage), 4);
    }
    for (int number = 0; number < 2; ++number) Inbox(memory, number).initialize();
    fence_barrier_init();
    for (int number = 0; number < min(2, schedule.count); ++number) Inbox(memory, number).open();
}

__device__ inline void run(const Tensors& tensors, const Maps& maps, Memory memory) {
    const Schedule schedule;
    const Producer producer(maps, memory, schedule);
    constexpr int producing = 4 * consumers;
    const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
    if (warp == producing && elect()) {
        initialize(memory, schedule);
        producer.begin();
    }
    __syncthreads();
    if constexpr (has_cluster) cluster_arrive();
    release_successor();
    if (warp < producing) {
        Consumer(memory, schedule).run();
    } else if (warp == producing) {
        if (elect()) producer.run();
        __syncwarp();
        if constexpr (has_cluster) cluster_wait();
    } else {
        if constexpr (folds_norm)
            Stager::ask_for_norm_weight(tensors, static_cast<int>(threadIdx.x) - 32 * (producing + 1));
        wait_for_predecessor();
        Finisher(tensors, memory, schedule).run();
    }
}

}  // namespace hone::linear::ring
