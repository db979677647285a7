// How the variants gemv, mma and strips are launched (few_tokens.cuh on the device): their config and the
// plan that they share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/linear/linear.h"

namespace hone::linear {

struct FewTokensConfig {
    std::int64_t tokens = 1;
    std::int64_t rows = 1;
    std::int64_t k_warps = 1;
    std::int64_t row_warps = 1;
    std::int64_t unroll = 1;
    std::int64_t load_hint = 1;
    std::int64_t blocks_per_sm = 0;
    std::int64_t programmatic = 0;
    std::int64_t fold_norm = 0;

    [[nodiscard]] std::int64_t threads() const { return 32 * k_warps * row_warps; }
};

namespace few_tokens {

/// Elements of an access to rows of x and the weights: 16 bytes, or the most that rows begin at multiples of.
[[nodiscard]] inline std::int64_t access_elements(const LinearProblem& p) {
    return std::min(p.in & -p.in, 16 / p.element_bytes());
}
/// Groups of tokens, a block each, and steps over the weight's rows.
[[nodiscard]] std::int64_t groups(const LinearProblem&, const FewTokensConfig&);
[[nodiscard]] std::int64_t steps(const LinearProblem&, const FewTokensConfig&);
/// Blocks of a launch.
[[nodiscard]] std::int64_t blocks(const LinearProblem&, const FewTokensConfig&, const DeviceTraits&);
/// The kernel over all groups and steps.
[[nodiscard]] Launch product(const Kernel& kernel, const LinearProblem&, const FewTokensConfig&,
                             const DeviceTraits&);
/// The first of the kernels so, behind the second one where a norm is not folded.
[[nodiscard]] Plan plan(std::span<const Kernel, 2> kernels, const LinearProblem&, const FewTokensConfig&,
                        const DeviceTraits&);

}  // namespace few_tokens
}  // namespace hone::linear
