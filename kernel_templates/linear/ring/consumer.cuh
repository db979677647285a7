// The warpgroups of variant ring (kernel.cu) that multiply: from stages of the ring to sums.
#pragma once

#include "device/wgmma.cuh"
#include "linear/ring/inbox.cuh"

namespace hone::linear::ring {

inline constexpr int row_blocks = geometry.row_blocks();
inline constexpr int n = geometry.n();
/// Steps of the tensor cores in a panel, and bytes of a row in one.
inline constexpr int panel_steps = 4;
inline constexpr int step_bytes = RingGeometry::row_bytes / panel_steps;

class Consumer {
  public:
    __device__ Consumer(Memory memory, const Schedule& schedule)
        : memory_(memory),
          schedule_(schedule),
          warpgroup_(__shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0)) {}

    /// Of all steps of all tiles, one after another, the warpgroup takes every `consumers`-th.
    __device__ void run() const {
        RingPosition<stages> ring;
        ring.stage = warpgroup_;
        int step = warpgroup_;
        for (int number = 0; number < schedule_.count; ++number) {
            Sums sums = {};
            for (; step < schedule_.steps; step += consumers, ring.advance(consumers))
                multiply_stage(sums, ring);
            step -= schedule_.steps;
            // All blocks of the cluster must run before anything is written there.
            if (has_cluster && number == 0) cluster_wait();
            send(sums, Inbox(memory_, number));
        }
    }

  private:
    /// Of each block of 64 rows.
    using Sums = float[row_blocks][n / 2];

    __device__ static int lane() { return threadIdx.x % 32; }
    /// Rows of a panel that a thread has sums of.
    __device__ static int row_of(int block, int half) {
        return block * 64 + threadIdx.x / 32 % 4 * 16 + lane() / 4 + 8 * half;
    }

    /// The stage is free again behind it.
    __device__ void multiply_stage(Sums& sums, const RingPosition<stages>& ring) const {
        const uint32 stage = memory_.stage(ring.stage);
        barrier_wait(memory_.full(ring.stage), ring.parity);
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) fence_accumulators(sums[b]);
        wgmma_fence();
#pragma unroll
        for (int panel = 0; panel < geometry.stage_panels(); ++panel) {
            const uint64 left = panel_descriptor(stage + panel * geometry.panel_bytes());
            const uint64 right =
                panel_descriptor(stage + geometry.stage_x_at() + panel * geometry.x_panel_bytes());
#pragma unroll
            for (int k = 0; k < panel_steps; ++k) {
#pragma unroll
                for (int b = 0; b < row_blocks; ++b)
                    Wgmma<Element, n>::multiply(
                        sums[b], advance_descriptor(left, b * 64 * RingGeometry::row_bytes + k * step_bytes),
                        advance_descriptor(right, k * step_bytes), 1);
            }
        }
        wgmma_commit();
        wgmma_wait<0>();
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) fence_accumulators(sums[b]);
        if (lane() == 0) barrier_arrive(memory_.empty(ring.stage));
    }

    __device__ void send(const Sums& sums, const Inbox& inbox) const {
        const int source = schedule_.rank * consumers + warpgroup_;
        inbox.wait_free();
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
            for (int i = 0; i < n / 2; ++i) {
                const int token = i / 4 * 8 + lane() % 4 * 2 + i % 2;
                if (token < tokens) inbox.send(source, row_of(b, i / 2 % 2), token, sums[b][i]);
            }
        }
        inbox.sent();
    }

    Memory memory_;
    const Schedule& schedule_;
    int warpgroup_;
};

}  // namespace hone::linear::ring
