// The producer of variant ring (kernel.cu): one thread.
#pragma once

#include "device/tma_prefetch.cuh"
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

    /// Weights do not depend on the kernel before: they fill the ring, or half of it, while that one ends,
    /// and those behind them may be asked of level 2. The copy engine takes requests in order, and x of the
    /// first step waits for all of them.
    __device__ void begin() const {
        for (int index = 0; index < min(early, steps()); ++index)
            load_weights(index / schedule_.steps, index % schedule_.steps, index);
        for (int index = early; index < min(early + ahead, steps()); ++index)
            ask_for_weights(index / schedule_.steps, index % schedule_.steps);
    }
    /// All that follows.
    __device__ void run() const {
        wait_for_predecessor();
        fence_async_proxy_global();
        for (int index = 0; index < min(early, steps()); ++index) load_x(index % schedule_.steps, index);
        int number = early / schedule_.steps;
        int step = early % schedule_.steps;
        RingPosition<stages> ring;
        // The first round of stages is empty.
        for (ring.advance(early); number < schedule_.count; ring.advance()) {
            barrier_wait(memory_.empty(ring.stage), ring.parity ^ 1);
            load_weights(number, step, ring.stage);
            load_x(step, ring.stage);
            if (++step < schedule_.steps) continue;
            step = 0;
            ++number;
        }
    }

  private:
    /// Stages that are filled before the wait, and those behind them that level 2 is asked for.
    static constexpr int early = Tuned::early == 1 ? (stages + 1) / 2 : stages;
    static constexpr int ahead = Tuned::early == 3 ? stages : 0;

    __device__ int steps() const { return schedule_.steps * schedule_.count; }

    /// The weights' panels of a step; x's are announced with them.
    __device__ void load_weights(int number, int step, int stage) const {
        const uint32 to = memory_.stage(stage);
        const uint32 barrier = memory_.full(stage);
        barrier_arrive_expecting(barrier, geometry.copied_bytes());
        for_each_box(number, step, [&](const TensorMap& map, int at, int column, int row) {
            load_box<L2Hint::evict_first>(to + at, map, column, row, barrier);
        });
    }
    __device__ void ask_for_weights(int number, int step) const {
        for_each_box(number, step, [&](const TensorMap& map, int, int column, int row) {
            prefetch_box<L2Hint::evict_first>(map, column, row);
        });
    }
    /// Visits the weights' boxes of a step: map, place in the stage, column and row.
    template <class Visit>
    __device__ void for_each_box(int number, int step, Visit visit) const {
        const int row = schedule_.tile(number) * geometry.rows;
#pragma unroll
        for (int panel = 0; panel < geometry.stage_panels(); ++panel) {
            const int at = panel * geometry.panel_bytes();
            const int column = column_of(step, panel);
            visit(maps_.weight, at, column, row);
            if constexpr (gated) visit(maps_.up, at + geometry.panel_bytes() / 2, column, row);
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
