#include <vector>

#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/linear/few_tokens_rules.h"
#include "kernel_templates/linear/few_tokens_tunables.h"
#include "kernel_templates/linear/gemv_plan.h"
#include "kernel_templates/linear/variants.h"

namespace hone::linear {
namespace {

using namespace few_tokens;

/// Those that a lane multiplies together.
std::int64_t vector_elements(const LinearProblem& p) { return 16 / p.element_bytes(); }

/// Loads of 16 bytes that a thread has under way.
std::int64_t loads(const LinearProblem& p, const FewTokensConfig& c) {
    return c.unroll * p.products() * c.rows;
}
std::int64_t registers(const LinearProblem& p, const FewTokensConfig& c) {
    const std::int64_t norm = c.fold_norm * 2 * (c.tokens + vector_elements(p));
    return 8 * loads(p, c) + p.products() * c.rows * c.tokens + 6 * c.tokens + 8 + norm;
}

constexpr Constraint constraints[] = {
    holds_up_to_8_tokens<gemv_tunables>,
    rule("blocks have 4 to 8 warps",
         [](const FewTokensConfig& c) { return c.threads() >= 128 && c.threads() <= 256; }),
    two_to_eight_loads<loads>,
    rule("warps that share a row must all have columns",
         [](const LinearProblem& p, const FewTokensConfig& c) {
             return c.k_warps == 1 || (c.k_warps - 1) * c.unroll * 512 < p.in * p.element_bytes();
         }),
    registers_fit<registers>,
    norm_is_folded<gemv_can_fold_norm>,
    resident_blocks_have_work,
    rows_exist,
    partials_fit,
    hint_needs_sm_90,
    programmatic_needs_sm_90<FewTokensConfig>,
};

double predict(const LinearProblem& p, const FewTokensConfig& c, const DeviceTraits& traits) {
    const double held_tokens = static_cast<double>(c.tokens);
    const double elements = static_cast<double>(vector_elements(p));
    const double accesses = elements / static_cast<double>(access_elements(p));
    const double shared_rows = static_cast<double>(c.rows * p.products());
    const double unpack = p.dtype == Dtype::fp32 ? 0.0 : elements;
    const double folds = c.fold_norm != 0 ? 1.0 : 0.0;  // the norm's weight, a square and a product
    const double each_x =
        held_tokens * (unpack + 4 * accesses + folds * 2 * elements) + folds * (unpack + 4 * accesses);
    return predict_us(p, c,
                      {.registers = registers(p, c),
                       .loads = static_cast<double>(loads(p, c)),
                       .latency_us = 0.8,
                       .instructions = 4 * accesses + unpack + elements * held_tokens + each_x / shared_rows,
                       .x_bytes = (held_tokens + folds) / shared_rows,
                       .bandwidth = 0.96 - 0.015 * held_tokens,
                       .rest_us = 0.25 * (held_tokens - 1)},
                      traits);
}

std::optional<FewTokensConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const LinearProblem p(problem);
    FewTokensConfig c;
    c.tokens = p.tokens <= 1 ? 1 : p.tokens <= 2 ? 2 : p.tokens <= 4 ? 4 : 8;
    c.rows = p.tokens <= 2 ? 1 : 2;
    c.unroll = p.tokens <= 2 ? 2 : 1;
    c.load_hint = 1;
    c.programmatic = traits.has_programmatic_launch() ? 1 : 0;
    c.fold_norm = p.norm ? 1 : 0;
    std::vector<FewTokensConfig> configs;
    const std::int64_t most_rows = p.tokens <= 2 ? 1 : 4;  // which share a token's x
    for (; c.rows <= most_rows; c.rows *= 2) {
        for (c.k_warps = 8; c.k_warps > 0; c.k_warps /= 2) {  // as many warps share a row as have columns
            c.row_warps = 8 / c.k_warps;
            configs.push_back(c);
        }
    }
    return best_of(problem, gemv, std::span<const FewTokensConfig>(configs), traits);
}

}  // namespace

const Variant gemv{.name = "gemv",
                   .summary = "1 to 8 tokens: weights stream through registers, products on the CUDA cores",
                   .source = "linear/gemv.cu",
                   .tunables = gemv_tunables,
                   .constraints = constraints,
                   .kernels = gemv_kernels,
                   .plan = typed<gemv_plan>,
                   .fallback = typed<fallback>,
                   .access_elements = typed<gemv_access_elements>,
                   .predict_us = typed<predict>};

}  // namespace hone::linear
