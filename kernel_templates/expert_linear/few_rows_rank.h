// What variants that read each active expert's weights once, for few rows of x (gemv, strips), predict alike.
#pragma once

#include "kernel_templates/expert_linear/combine_rank.h"
#include "kernel_templates/expert_linear/tiles_rank.h"
#include "kernel_templates/linear/few_tokens_rules.h"

namespace hone::expert_linear {

/// A product of linear's few tokens with the rows of all experts' weights one after the other, and finding
/// the block's own: `finding_us`. C has tile_rows, rows, k_warps, row_warps,
/// unroll and programmatic.
template <class C>
[[nodiscard]] double few_rows_us(const ExpertProblem& p, const C& c, double finding_us,
                                 const linear::few_tokens::Stream& stream, const DeviceTraits& traits) {
    linear::LinearProblem dense = p.dense(c.tile_rows);
    const auto tiles = static_cast<double>(routed_tiles(p, c.tile_rows));
    dense.out *= routed_tiles(p, c.tile_rows);
    const linear::FewTokensConfig config{.tokens = c.tile_rows,
                                         .rows = c.rows,
                                         .k_warps = c.k_warps,
                                         .row_warps = c.row_warps,
                                         .unroll = c.unroll,
                                         .load_hint = 1,
                                         .programmatic = c.programmatic};
    linear::few_tokens::Stream of_experts = stream;
    // An expert's second tile finds its weights in level 2.
    of_experts.bandwidth *= tiles / static_cast<double>(p.with_rows());
    // A block's loads come in whole batches, and the first of them has nothing beside it.
    const double batch_bytes = static_cast<double>(config.threads()) * stream.loads * 16;
    const double batches =
        static_cast<double>(c.rows * c.row_warps * p.products() * p.in * p.element_bytes()) / batch_bytes;
    of_experts.latency_us *= (std::ceil(batches - 0.01) + 0.65) / batches;
    const double blocks =
        tiles * static_cast<double>(ceil_div(p.out, c.rows * c.row_warps)) / traits.sm_count;
    const double uneven = 1 + 0.15 * (std::ceil(blocks) / blocks - 1);
    return finding_us + combine_us(p, traits, c.programmatic != 0) +
           uneven * linear::few_tokens::predict_us(dense, config, of_experts, traits);
}

}  // namespace hone::expert_linear
