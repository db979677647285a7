#include "kernel_templates/quantized_linear/two_widths/plan.h"

namespace hone::quantized_linear {
namespace {

using linear::gemm::Geometry;
using linear::gemm::matrix_map;

/// Maps of x, of the result and of x's last tile, in boxes of `columns` tokens.
void add_maps(Plan& plan, const QuantizedProblem& p, const Geometry& g, std::int64_t columns) {
    const int box = static_cast<int>(columns);
    const TensorMap of_x = matrix_map(p.dtype, x, x_stride, p.in, p.tokens, g.operands.columns, box);
    const int index = add_map(plan, of_x);
    add_map(plan, matrix_map(p.dtype, out, out_stride, p.out, p.tokens, g.panel_width(), box));
    add_map(plan, linear::gemm::rest_map(of_x, index));
}

}  // namespace

Plan two_widths_plan(const QuantizedProblem& p, const TwoWidthsConfig& c, const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    Launch product = launch(two_widths_kernels[0], grid_of(linear::gemm::places(c, traits)), g.threads());
    product.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    product.programmatic = c.programmatic != 0;
    Plan plan = plan_of(product);
    add_maps(plan, p, g, c.tile_n);
    add_maps(plan, p, g, c.last_n);
    return linear::normalize_first(p.dense(), plan, two_widths_kernels[1]);
}

}  // namespace hone::quantized_linear
