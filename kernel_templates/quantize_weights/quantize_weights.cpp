#include "kernel_templates/quantize_weights/quantize_weights.h"

namespace hone::quantize_weights {

std::int64_t WeightProblem::scale_count() const {
    using namespace quantized_linear;
    if (is_w4()) return whole_blocks(out) * group_places() * block_rows;
    if (one_scale) return 1;
    return group == 0 ? out : ceil_div(out, scaled_block) * (in / group);
}

}  // namespace hone::quantize_weights
