// What variants that read each active expert's weights once, for few rows of x (gemv, strips), predict alike.
#pragma once

#include "kernel_templates/expert_linear/combine_rank.h"
#include "kernel_templates/linear/few_tokens_rules.h"

namespace hone::expert_linear {

/// A product of linear's few tokens with the rows of all experts' weights one after the other, and finding
/// the block's own: `finding_us` and a little for each block. C has tile_rows, rows, k_warps, row_warps,
/// unroll and programmatic.
template <class C>
[[nodiscard]] double few_rows_us(const ExpertProblem& p, const C& c, double finding_us,
                                 const linear::few_tokens::Stream& stream, const DeviceTraits& traits) {
    linear::LinearProblem dense = p.dense(c.tile_rows);
    dense.out *= p.tiles(c.tile_rows);
    const linear::FewTokensConfig config{.tokens = c.tile_rows,
                                         .rows = c.rows,
                                         .k_warps = c.k_warps,
                                         .row_warps = c.row_warps,
                                         .unroll = c.unroll,
                                         .load_hint = 1,
                                         .programmatic = c.programmatic};
    const double blocks = static_cast<double>(p.tiles(c.tile_rows) * ceil_div(p.out, c.rows * c.row_warps));
    return finding_us + 0.04 * blocks / traits.sm_count + combine_us(p, traits, c.programmatic != 0) +
           linear::few_tokens::predict_us(dense, config, stream, traits);
}

}  // namespace hone::expert_linear
