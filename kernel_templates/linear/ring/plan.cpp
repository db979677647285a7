#include "kernel_templates/linear/ring/plan.h"

#include "kernel_templates/linear/wgmma/product.h"

namespace hone::linear {

Plan ring_product(const Kernel& kernel, const LinearProblem& p, const RingConfig& c, const RingGeometry& g,
                  const DeviceTraits& traits) {
    Launch product = launch(kernel, grid_of(blocks(p, c, traits)), g.threads());
    product.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    product.cluster = grid_of(g.cluster_k);
    product.programmatic = c.programmatic != 0;
    Plan plan = plan_of(product);

    const auto map = [&](int pointer, int stride, std::int64_t rows, int box_rows) {
        return gemm::matrix_map(p.dtype, pointer, stride, p.in, rows, RingGeometry::panel_columns, box_rows);
    };
    const TensorMap weight_map = map(weight, weight_stride, p.out, g.rows);
    TensorMap unused = weight_map;
    unused.same_as = 0;
    add_map(plan, weight_map);
    add_map(plan, p.gated ? map(up, up_stride, p.out, g.rows) : unused);
    add_map(plan, map(x, x_stride, p.tokens, g.tokens));
    return plan;
}

Plan ring_plan(const LinearProblem& p, const RingConfig& c, const DeviceTraits& traits) {
    const RingGeometry g = geometry(p, c);
    const Plan product = ring_product(ring_kernels[0], p, c, g, traits);
    return g.norm ? product : normalize_first(p, product, ring_kernels[1]);
}

}  // namespace hone::linear
