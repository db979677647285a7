// The warpgroups of variant ring_w8 (kernel.cu) that multiply: from stages of the ring and x to sums.
#pragma once

#include "device/wgmma_8bit.cuh"
#include "quantized_linear/ring_w8/block.cuh"

namespace hone::quantized_linear::ring_w8 {

inline constexpr int row_blocks = geometry.row_blocks();
inline constexpr int n = geometry.n();
/// Steps of the tensor cores in a panel.
inline constexpr int panel_steps = RingW8Geometry::panel_columns / wgmma_codes;

/// Descriptor of a right operand in chunks of 16 codes (geometry.cuh): 8 tokens stand in 128 bytes, the next
/// 8 behind them, the next columns `tokens` chunks further. No swizzle.
__device__ inline uint64 chunk_descriptor(uint32 address) {
    constexpr uint32 next_columns = tokens;
    constexpr uint32 next_tokens = 128 / RingW8Geometry::chunk;
    const uint32 low = ((address & 0x3ffffu) >> 4) | next_columns << 16;
    return static_cast<uint64>(next_tokens) << 32 | low;
}

class Consumer {
  public:
    __device__ Consumer(const Tensors& tensors, Memory memory, const Schedule& schedule)
        : tensors_(tensors),
          memory_(memory),
          schedule_(schedule),
          warpgroup_(__shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0)) {}

    /// Of all steps of all tiles, one after another, the warpgroup takes every `consumers`-th.
    __device__ void run() const {
        RingPosition<stages> ring;
        ring.stage = warpgroup_;
        int step = warpgroup_;
        for (int number = 0; number < schedule_.count; ++number) {
            Sums sums = {};
            RowScales rows;
            if constexpr (has_blocks) rows.find(tensors_, schedule_.tile(number));
            for (; step < geometry.steps(); step += consumers, ring.advance(consumers))
                multiply(sums, rows, step, ring);
            step -= geometry.steps();
            put(sums, number);
        }
    }

  private:
    /// Sums of a block of 64 rows.
    using Accumulators = Partial[n / 2];
    using Sums = Accumulators[row_blocks];

    /// Where scales of the thread's rows stand, of blocks of 128 rows x 128 columns.
    struct RowScales {
        const float* from[row_blocks][2];

        __device__ void find(const Tensors& tensors, int tile) {
#pragma unroll
            for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int place = min(row_of(b, half), geometry.panel_rows() - 1);
                    const int row = min(tile * geometry.rows + place % geometry.rows, out - 1);
                    from[b][half] =
                        tensors.weight_of(place / geometry.rows).scales + row / scaled_block * groups;
                }
            }
        }
    };

    __device__ static int lane() { return threadIdx.x % 32; }
    /// Rows of a panel that a thread has sums of.
    __device__ static int row_of(int block, int half) {
        return block * 64 + threadIdx.x / 32 % 4 * 16 + lane() / 4 + 8 * half;
    }

    __device__ void multiply(Sums& sums, const RowScales& rows, int step,
                             const RingPosition<stages>& ring) const {
        if constexpr (has_blocks) {
            multiply_blocks(sums, rows, step, ring);
        } else if constexpr (format == Format::fp8) {
            // The tensor cores add up a step; float32 registers the steps.
            Sums parts;
            multiply_stage<geometry.stage_panels()>(parts, step, ring, 0);
#pragma unroll
            for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
                for (int i = 0; i < n / 2; ++i) sums[b][i] += parts[b][i];
            }
        } else {
            multiply_stage<geometry.stage_panels()>(sums, step, ring, 1);
        }
    }

    /// Each panel has sums of its own, which get their scales.
    __device__ void multiply_blocks(Sums& sums, const RowScales& rows, int step,
                                    const RingPosition<stages>& ring) const {
        constexpr int stage_panels = geometry.stage_panels();
        float of_rows[stage_panels][row_blocks][2];
#pragma unroll
        for (int panel = 0; panel < stage_panels; ++panel) {
            const int group = min(step * stage_panels + panel, groups - 1);
#pragma unroll
            for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
                for (int half = 0; half < 2; ++half) of_rows[panel][b][half] = rows.from[b][half][group];
            }
        }
        Accumulators parts[stage_panels * row_blocks];
        multiply_stage<1>(parts, step, ring, 0);
#pragma unroll
        for (int panel = 0; panel < stage_panels; ++panel) {
            const float* const of_tokens =
                memory_.scales() + (step * stage_panels + panel) * n + lane() % 4 * 2;
#pragma unroll
            for (int i = 0; i < n / 2; ++i) {
                const float of_token = of_tokens[i / 4 * 8 + i % 2];
#pragma unroll
                for (int b = 0; b < row_blocks; ++b)
                    sums[b][i] = fmaf(parts[panel * row_blocks + b][i],
                                      of_token * of_rows[panel][b][i / 2 % 2], sums[b][i]);
            }
        }
    }

    /// A stage's products: its panels, `together` of which have the same sums; those begin with what they are
    /// where `accumulate` is not 0. The stage is free again behind it.
    template <int together, int count>
    __device__ void multiply_stage(Accumulators (&parts)[count], int step, const RingPosition<stages>& ring,
                                   int accumulate) const {
        const uint32 stage = memory_.stage(ring.stage);
        barrier_wait(memory_.full(ring.stage), ring.parity);
#pragma unroll
        for (int i = 0; i < count; ++i) fence_accumulators(parts[i]);
        wgmma_fence();
#pragma unroll
        for (int panel = 0; panel < geometry.stage_panels(); ++panel) {
            const uint64 left = panel_descriptor(stage + panel * geometry.panel_bytes());
#pragma unroll
            for (int k = 0; k < panel_steps; ++k) {
                const uint64 right = right_of(stage, step, panel, k);
                const bool follows = panel % together > 0 || k > 0;
#pragma unroll
                for (int b = 0; b < row_blocks; ++b)
                    WgmmaCodes<Code, n>::multiply(
                        parts[panel / together * row_blocks + b],
                        advance_descriptor(left, b * 64 * panel_pitch + k * wgmma_codes), right,
                        follows ? 1 : accumulate);
            }
        }
        wgmma_commit();
        wgmma_wait<0>();
#pragma unroll
        for (int i = 0; i < count; ++i) fence_accumulators(parts[i]);
        if (lane() == 0) barrier_arrive(memory_.empty(ring.stage));
    }

    __device__ uint64 right_of(uint32 stage, int step, int panel, int k) const {
        if constexpr (x_streams)
            return advance_descriptor(
                panel_descriptor(stage + geometry.stage_x_at() + panel * geometry.x_panel_bytes()),
                k * wgmma_codes);
        const int column =
            (step * geometry.stage_panels() + panel) * RingW8Geometry::panel_columns + k * wgmma_codes;
        return advance_descriptor(chunk_descriptor(memory_.x()), column * tokens);
    }

    __device__ void put(const Sums& sums, int number) const {
        const Meeting meeting(number);
        barrier_wait(memory_.sums_read(meeting.buffer), meeting.parity ^ 1);
        Partial* const to = memory_.partials(meeting.buffer, warpgroup_);
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
            for (int i = 0; i < n / 2; ++i) {
                const int token = i / 4 * 8 + lane() % 4 * 2 + i % 2;
                if (token < tokens)
                    to[token * geometry.pitch() + row_of(b, i / 2 % 2)] = sums[b][i];
            }
        }
        barrier_arrive(memory_.sums_full(meeting.buffer));
    }

    const Tensors& tensors_;
    Memory memory_;
    const Schedule& schedule_;
    int warpgroup_;
};

}  // namespace hone::quantized_linear::ring_w8
