#include "kernel_templates/quantized_linear/ring_w8/plan.h"

#include "kernel_templates/linear/wgmma/product.h"

namespace hone::quantized_linear {

Plan ring_w8_plan(const QuantizedProblem& p, const RingW8Config& c, const DeviceTraits& traits) {
    const RingW8Geometry g = geometry(p, c);
    Launch product = launch(ring_w8_kernels[0], grid_of(blocks(p, c, traits)), g.threads());
    product.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    product.programmatic = c.programmatic != 0;
    Plan plan = plan_of(product);

    const auto map = [&](int pointer, int stride, std::int64_t rows, int box_rows) {
        return linear::gemm::matrix_map(p.code_dtype(), pointer, stride, p.in, rows,
                                        RingW8Geometry::panel_columns, box_rows);
    };
    const TensorMap weight_map = map(weight, weight_stride, p.out, g.rows);
    TensorMap unused = weight_map;
    unused.same_as = 0;
    add_map(plan, weight_map);
    add_map(plan, p.gated ? map(up, up_stride, p.out, g.rows) : unused);
    add_map(plan, g.x_streams ? map(x, x_stride, p.tokens, g.n()) : unused);
    return c.x_place == x_made ? plan : quantize_first(p, plan, ring_w8_kernels[1]);
}

}  // namespace hone::quantized_linear
