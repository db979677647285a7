// The producer of variant ring_w8 (kernel.cu): one thread.
#pragma once

#include "device/tma.cuh"
#include "quantized_linear/ring_w8/block.cuh"

namespace hone::quantized_linear::ring_w8 {

struct Maps {
    const TensorMap& weight;
    const TensorMap& up;
    const TensorMap& x;
};

class Producer {
  public:
    __device__ Producer(const Maps& maps, Memory memory, const Schedule& schedule)
        : maps_(maps), memory_(memory), schedule_(schedule) {}

    /// Weights do not depend on the kernel before: they fill the ring while that one ends. Where x passes
    /// through the ring only half of it: the copy engine takes requests in order, and x of the first step
    /// would wait for all of them.
    __device__ void run() {
        int number = 0;
        int step = 0;
        const auto advance = [&] {
            if (++step < geometry.steps()) return;
            step = 0;
            ++number;
        };
        constexpr int early = x_streams ? (stages + 1) / 2 : stages;
        for (int stage = 0; stage < early && number < schedule_.count; ++stage, advance())
            fill(number, step, stage);
        if constexpr (x_streams) {
            wait_for_predecessor();
            fence_async_proxy_global();
            for (int index = 0; index < min(early, geometry.steps() * schedule_.count); ++index)
                load_x(index % geometry.steps(), index);
        }
        RingPosition<stages> ring;
        // The first round of stages is empty.
        for (ring.advance(early); number < schedule_.count; ring.advance(), advance()) {
            barrier_wait(memory_.empty(ring.stage), ring.parity ^ 1);
            fill(number, step, ring.stage);
            if constexpr (x_streams) load_x(step, ring.stage);
        }
    }

  private:
    /// The weights' panels of a step; x that passes through the ring is announced with them.
    __device__ void fill(int number, int step, int stage) const {
        const uint32 barrier = memory_.full(stage);
        const int row = schedule_.tile(number) * geometry.rows;
        barrier_arrive_expecting(barrier, geometry.stage_bytes());
#pragma unroll
        for (int panel = 0; panel < geometry.stage_panels(); ++panel) {
            const uint32 to = memory_.stage(stage) + panel * geometry.panel_bytes();
            const int column = step * geometry.stage_columns + panel * RingW8Geometry::panel_columns;
            load_box<L2Hint::evict_first>(to, maps_.weight, column, row, barrier);
            if constexpr (gated)
                load_box<L2Hint::evict_first>(to + geometry.panel_bytes() / 2, maps_.up, column, row,
                                              barrier);
        }
    }
    __device__ void load_x(int step, int stage) const {
#pragma unroll
        for (int panel = 0; panel < geometry.stage_panels(); ++panel)
            load_box<L2Hint::evict_last>(
                memory_.stage(stage) + geometry.stage_x_at() + panel * geometry.x_panel_bytes(), maps_.x,
                step * geometry.stage_columns + panel * RingW8Geometry::panel_columns, 0,
                memory_.full(stage));
    }

    const Maps& maps_;
    Memory memory_;
    const Schedule& schedule_;
};

}  // namespace hone::quantized_linear::ring_w8
