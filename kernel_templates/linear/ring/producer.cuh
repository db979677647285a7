// The producer of variant ring (kernel.cu): one thread.
#pragma once

#include "device/tma.cuh"
#include "linear/ring/block.cuh"

namespace hone::linear::ring {

struct Maps {
    const TensorMap& weight;
    const TensorMap& up;
    const TensorMap& x;
};

class Producer {
  public:
    __device__ Producer(const Maps& maps, Memory memory, const Schedule& schedule)
        : maps_(maps), memory_(memory), schedule_(schedule) {}

    /// Weights do not depend on the kernel before: they fill the ring, or half of it, while that one ends.
    /// The copy engine takes requests in order, and x of the first step waits for all of them.
    __device__ void begin() const {
        for (int index = 0; index < min(early, steps()); ++index)
            load_weights(index / schedule_.steps, index % schedule_.steps, index);
    }
    /// All that follows.
    __device__ void run() const {
        if constexpr (!folds_norm) {
            wait_for_predecessor();
            fence_async_proxy_global();
            for (int index = 0; index < min(early, steps()); ++index) load_x(index % schedule_.steps, index);
        }
        int number = early / schedule_.steps;
        int step = early % schedule_.steps;
        RingPosition<stages> ring;
        // The first round of stages is empty.
        for (ring.advance(early); number < schedule_.count; ring.advance()) {
            barrier_wait(memory_.empty(ring.stage), ring.parity ^ 1);
            load_weights(number, step, ring.stage);
            if constexpr (!folds_norm) load_x(step, ring.stage);
            if (++step < schedule_.steps) continue;
            step = 0;
            ++number;
        }
    }

  private:
    /// Stages that are filled before the wait.
    static constexpr int early = Tuned::early == 1 ? (stages + 1) / 2 : stages;

    __device__ int steps() const { return schedule_.steps * schedule_.count; }

    /// The weights' panels of a step; x's are announced with them.
    __device__ void load_weights(int number, int step, int stage) const {
        const uint32 barrier = memory_.full(stage);
        const int row = schedule_.tile(number) * geometry.rows;
        barrier_arrive_expecting(barrier, geometry.copied_bytes());
#pragma unroll
        for (int panel = 0; panel < geometry.stage_panels(); ++panel) {
            const uint32 to = memory_.stage(stage) + panel * geometry.panel_bytes();
            const int column = column_of(step, panel);
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
                column_of(step, panel), 0, memory_.full(stage));
    }
    __device__ int column_of(int step, int panel) const {
        return (schedule_.first_step + step) * geometry.stage_columns + panel * RingGeometry::panel_columns;
    }

    const Maps& maps_;
    Memory memory_;
    const Schedule& schedule_;
};

}  // namespace hone::linear::ring
