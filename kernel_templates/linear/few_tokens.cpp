#include "kernel_templates/linear/few_tokens.h"

#include <algorithm>

#include "kernel_templates/linear/normalize.h"

namespace hone::linear::few_tokens {

std::int64_t groups(const LinearProblem& p, const FewTokensConfig& c) { return ceil_div(p.tokens, c.tokens); }

std::int64_t steps(const LinearProblem& p, const FewTokensConfig& c) {
    return ceil_div(p.out, c.rows * c.row_warps);
}

std::int64_t blocks(const LinearProblem& p, const FewTokensConfig& c, const DeviceTraits& traits) {
    const std::int64_t group_count = groups(p, c);
    if (c.blocks_per_sm == 0) return steps(p, c) * group_count;
    const std::int64_t resident = traits.sm_count * c.blocks_per_sm / group_count;
    return std::min(steps(p, c), std::max<std::int64_t>(resident, 1)) * group_count;
}

Launch product(const Kernel& kernel, const LinearProblem& p, const FewTokensConfig& c,
               const DeviceTraits& traits) {
    Launch product = launch(kernel, grid_of(blocks(p, c, traits)), c.threads());
    product.programmatic = c.programmatic != 0;
    return product;
}

Plan plan(std::span<const Kernel, 2> kernels, const LinearProblem& p, const FewTokensConfig& c,
          const DeviceTraits& traits) {
    const Plan alone = plan_of(product(kernels[0], p, c, traits));
    return c.fold_norm != 0 ? alone : normalize_first(p, alone, kernels[1]);
}

}  // namespace hone::linear::few_tokens
