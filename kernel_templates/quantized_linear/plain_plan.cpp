#include "kernel_templates/quantized_linear/plain_plan.h"

namespace hone::quantized_linear {

Plan plain_plan(const QuantizedProblem& p, const PlainConfig& c, const DeviceTraits&) {
    Launch product =
        launch(plain_kernels[0], grid_of(linear::plain_product::blocks(p.dense(), c)), c.threads());
    product.programmatic = c.programmatic != 0;
    return prepare_first(p, plan_of(product), plain_kernels);
}

}  // namespace hone::quantized_linear
