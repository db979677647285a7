// What a stage of variant wgmma_w16's ring (kernel.cu) holds of a weight. Plain C++ that both the host's
// plan and the kernel include, so that they cannot disagree.
#pragma once

#include "linear/wgmma/geometry.cuh"
#include "quantized_linear/layout.cuh"

namespace hone::quantized_linear::w16 {

/// What the tunable stages_together says.
struct Form {
    int together = 0;    ///< stages with no pause between their products, but one behind them; 0: no pauses
    bool pairs = false;  ///< without pauses: two stages are taken at a time
    bool turns = false;  ///< and warpgroups that share a tile issue their products in turns

    constexpr bool pauses() const { return together > 0; }
    /// Stages that are worked on, or whose codes have been read.
    constexpr int held() const { return pauses() ? together : pairs ? 4 : 2; }
    /// The ring has a multiple of so many stages.
    constexpr int stage_steps() const { return pairs ? 2 : 1; }
};
constexpr Form form_of(int stages_together) {
    if (stages_together == 6) return {.pairs = true};
    if (stages_together == 7) return {.pairs = true, .turns = true};
    return {.together = stages_together};
}

/// What belongs to one block of 64 rows x 64 columns: its codes; beside them, of w4a16 with groups, the
/// scales of the groups that its columns are in, then their zero points. Scales of whole rows do not go
/// through the ring.
struct Stage {
    int bits = 4;
    int group = 0;  ///< columns
    bool zeros = false;

    constexpr int code_bytes() const { return block_rows * block_columns * bits / 8; }
    /// Groups that a block's columns are in.
    constexpr int groups() const {
        return group == 0 ? 0 : group < block_columns ? block_columns / group : 1;
    }
    /// The first of them, of the row's, in the k-th block of a row; not without groups.
    constexpr int first_group(int k) const { return k * block_columns / (group == 0 ? 1 : group); }
    constexpr int scale_bytes() const { return groups() * block_rows * 2; }
    constexpr int zero_bytes() const { return zeros ? groups() * block_rows : 0; }
    constexpr int extra_bytes() const { return scale_bytes() + zero_bytes(); }

    /// The weight is the left operand, x the right one: 64 elements, a swizzled row.
    constexpr linear::gemm::Operands operands(Form form = {}) const {
        return {.columns = block_columns,
                .left_pitch = code_bytes() / block_rows,
                .right_pitch = block_columns * 2,
                .left_extra = extra_bytes() / block_rows,
                .k_unit = form.pauses() ? form.together : form.stage_steps(),
                .stage_steps = form.stage_steps()};
    }
};

/// A thread's registers: what the launch gives to all alike, in steps of 8, and what the roles have when the
/// producers have passed theirs on.
struct Registers {
    int launched = 0;
    int producer = 40;
    int consumer = 0;

    constexpr bool move() const { return consumer > launched; }
};
constexpr Registers registers_of(const linear::gemm::Geometry& g) {
    constexpr int most = 255;
    constexpr int most_moved = 232;
    Registers r;
    const int share = 65536 / (g.threads() * g.blocks_per_sm) / 8 * 8;
    r.launched = share < most ? share : most;
    const int passed_on = share > r.producer ? (share - r.producer) / g.consumers / 8 * 8 : 0;
    const int moved = r.launched + passed_on < most_moved ? r.launched + passed_on : most_moved;
    r.consumer = moved > r.launched ? moved : r.launched;
    return r;
}

}  // namespace hone::quantized_linear::w16
