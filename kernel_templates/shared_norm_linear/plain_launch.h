// How plain.cuh is launched, for the families whose products share norms.
#pragma once

#include <cstdint>

#include "kernel_templates/kit/launches.h"

namespace hone::shared_norm_linear {

struct PlainConfig {
    std::int64_t tokens = 4;
    std::int64_t programmatic = 0;
};

template <class P>
[[nodiscard]] Plan plan_of_plain(const P& p, const PlainConfig& c, const Kernel& kernel) {
    Launch product = launch(kernel, grid_of(p.blocks(c.tokens)), 256);
    product.programmatic = c.programmatic != 0;
    return plan_of(product);
}

}  // namespace hone::shared_norm_linear
