#include "kernel_templates/quantized_linear/ring/plan.h"

namespace hone::quantized_linear {
namespace {

TensorMap x_map(const QuantizedProblem& p, const RingConfig& c) {
    TensorMap map{.pointer = x, .dtype = p.dtype, .rank = 2, .swizzle_bytes = 128};
    map.extents[0] = static_cast<std::uint32_t>(p.in);
    map.extents[1] = static_cast<std::uint32_t>(p.tokens);
    map.stride_scalars[0] = x_stride;
    map.box[0] = block_columns;
    map.box[1] = static_cast<std::uint16_t>(c.tokens);
    return map;
}

}  // namespace

Plan ring_product(const Kernel& kernel, const QuantizedProblem& p, const RingConfig& c,
                  const RingGeometry& g) {
    Launch product = launch(kernel, grid_of(blocks(p, c)), g.threads());
    product.cluster = grid_of(g.cluster_k);
    product.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    product.programmatic = c.programmatic != 0;
    Plan plan = plan_of(product);
    add_map(plan, x_map(p, c));
    return plan;
}

Plan ring_plan(const QuantizedProblem& p, const RingConfig& c, const DeviceTraits&) {
    return linear::normalize_first(p.dense(), ring_product(ring_kernels[0], p, c, geometry(p, c)),
                                   ring_kernels[1]);
}

}  // namespace hone::quantized_linear
