// How the variants plain of linear and of quantized_linear are launched (plain_product.cuh on the device):
// their config, and the grid that follows from it.
#pragma once

#include "kernel_templates/linear/linear.h"

namespace hone::linear::plain_product {

struct PlainConfig {
    std::int64_t tile_tokens = 16;
    std::int64_t tile_out = 64;
    std::int64_t tile_in = 16;
    std::int64_t thread_tokens = 2;
    std::int64_t thread_out = 4;
    std::int64_t vector = 1;
    std::int64_t programmatic = 0;

    [[nodiscard]] std::int64_t threads() const {
        return tile_tokens / thread_tokens * (tile_out / thread_out);
    }
};

[[nodiscard]] inline std::int64_t blocks(const LinearProblem& p, const PlainConfig& c) {
    return ceil_div(p.tokens, c.tile_tokens) * ceil_div(p.out, c.tile_out);
}

}  // namespace hone::linear::plain_product
