#include "kernel_templates/quantized_linear/wgmma_w16/plan.h"

#include <algorithm>

namespace hone::quantized_linear {
namespace {

using linear::gemm::Geometry;
using linear::gemm::matrix_map;

/// Maps of x, of the result and of x's last tile; where the result does not leave by the copy engine, x's
/// stands in.
void add_maps(Plan& plan, const QuantizedProblem& p, const Geometry& g) {
    const TensorMap of_x = matrix_map(p.dtype, x, x_stride, p.in, p.tokens, g.operands.columns, g.x_box());
    TensorMap unused = of_x;
    unused.same_as = add_map(plan, of_x);
    add_map(plan, g.staged ? matrix_map(p.dtype, out, out_stride, p.out, p.tokens, g.panel_width(),
                                        g.panel_tokens())
                           : unused);
    add_map(plan, linear::gemm::rest_map(of_x, 0));
}

}  // namespace

Plan wgmma_w16_plan(const QuantizedProblem& p, const WgmmaW16Config& c, const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    // Clusters have one tile each, other blocks walk.
    const std::int64_t count = linear::gemm::tiles(p.dense(), g);
    const std::int64_t most = linear::gemm::places(c, traits);
    const std::int64_t parts = linear::gemm::parts_of_tail(p.dense(), c, traits);
    const std::int64_t blocks = g.cluster_k > 1 ? count * g.cluster_k
                                : g.tail_pairs  ? linear::gemm::paired_blocks(p.dense(), c, traits)
                                                : std::min(count * parts, most);
    Launch product = launch(wgmma_w16_kernels[0], grid_of(blocks), g.threads());
    product.cluster = grid_of(g.joined_blocks());
    product.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    product.programmatic = c.programmatic != 0;
    Plan plan = plan_of(product);
    // The same for any number of tokens: fewer of them may leave a larger rest.
    if (c.tail_split == 1) plan.workspace_bytes = most * g.workspace_bytes();
    add_maps(plan, p, g);
    return linear::normalize_first(p.dense(), plan, wgmma_w16_kernels[1]);
}

}  // namespace hone::quantized_linear
