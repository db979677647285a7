#include "kernel_templates/kit/fixed_answers.h"
#include "kernel_templates/linear/few_tokens_rules.h"
#include "kernel_templates/linear/few_tokens_tunables.h"
#include "kernel_templates/linear/strips_plan.h"
#include "kernel_templates/linear/variants.h"

namespace hone::linear {
namespace {

using namespace few_tokens;

std::int64_t parts(const FewTokensConfig& c) { return 16 / c.tokens; }
/// Rows that an instruction has, and loads of 16 bytes that a thread has under way.
std::int64_t mma_rows(const FewTokensConfig& c) { return 8 / parts(c); }
std::int64_t loads(const LinearProblem& p, const FewTokensConfig& c) {
    return c.unroll * p.products() * c.rows / mma_rows(c);
}
std::int64_t registers(const LinearProblem& p, const FewTokensConfig& c) {
    return 8 * loads(p, c) + p.products() * c.rows / mma_rows(c) * 4 + 8 + 32;
}

constexpr Constraint constraints[] = {
    elements_of_tensor_cores,
    rows_are_aligned,
    more_than_a_token,
    holds_up_to_8_tokens<strips_tunables>,
    rule("rows fill instructions, up to four of them",
         [](const FewTokensConfig& c) { return c.rows % mma_rows(c) == 0 && c.rows <= 4 * mma_rows(c); }),
    rule("blocks have 4 to 16 warps",
         [](const FewTokensConfig& c) { return c.threads() >= 128 && c.threads() <= 512; }),
    two_to_eight_loads<loads>,
    rule("warps that share a row must all have columns",
         [](const LinearProblem& p, const FewTokensConfig& c) {
             return c.k_warps == 1 || (c.k_warps - 1) * c.unroll * 32 * parts(c) < p.in;
         }),
    registers_fit<registers>,
    resident_blocks_have_work,
    rows_exist,
    partials_fit,
    hint_needs_sm_90,
    programmatic_needs_sm_90<FewTokensConfig>,
};

double predict(const LinearProblem& p, const FewTokensConfig& c, const DeviceTraits& traits) {
    const double shared_blocks = static_cast<double>(c.rows / mma_rows(c) * p.products());
    // Two accesses to x for each strip serve an access to each block of rows.
    return predict_us(p, c,
                      {.registers = registers(p, c),
                       .loads = static_cast<double>(loads(p, c)),
                       .latency_us = 0.8 + 0.2 / shared_blocks,
                       .instructions = 8 + 10 / shared_blocks,
                       .x_bytes = 2 / shared_blocks,
                       .bandwidth = 0.95,
                       .rest_us = 0.3},
                      traits);
}

}  // namespace

const Variant strips{
    .name = "strips",
    .summary = "2 to 8 tokens: weights stream in long strips of rows through registers into tensor cores",
    .source = "linear/strips.cu",
    .min_arch = {8, 0, false},
    .tunables = strips_tunables,
    .constraints = constraints,
    .kernels = strips_kernels,
    .plan = typed<strips_plan>,
    .fallback = no_fallback,
    .access_elements = typed<strips_access_elements>,
    .predict_us = typed<predict>};

}  // namespace hone::linear
