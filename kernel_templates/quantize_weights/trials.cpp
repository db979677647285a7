#include "kernel_templates/quantize_weights/trials.h"

#include "kernel_templates/quantize_weights/scale_rule.cuh"

namespace hone::quantize_weights {

std::int64_t trials(const WeightProblem& p) {
    constexpr std::int64_t usual_fits = 3;  // of the scale that fits the codes best
    if (!p.is_w4() || !p.search) return 1;
    const std::int64_t parts = part_count(static_cast<int>(p.width()));
    return 1 + (p.zeros ? 2 * (parts + 14) + 51 : 2 * (parts + 8) + 17) + usual_fits;
}

}  // namespace hone::quantize_weights
