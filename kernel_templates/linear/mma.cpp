#include "kernel_templates/linear/few_tokens_rules.h"
#include "kernel_templates/linear/mma_plan.h"
#include "kernel_templates/linear/variants.h"

namespace hone::linear {
namespace {

using namespace few_tokens;

constexpr auto tunables = tunables_of({
    tunable<&FewTokensConfig::tokens>("tokens of a block", {4, 8, 16, 32}),
    tunable<&FewTokensConfig::rows>("rows of the weight that a warp multiplies together", {16, 32}),
    tunable<&FewTokensConfig::k_warps>("warps that share a row", {4, 8, 16}),
    tunable<&FewTokensConfig::row_warps>("groups of them in a block", {1, 2}),
    tunable<&FewTokensConfig::unroll>("accesses to each row that a thread keeps in flight", {1, 2, 4}),
    tunable<&FewTokensConfig::load_hint>("of weights: 1 not into level 1, 3 and first to leave level 2",
                                         {1, 3}),
    tunable<&FewTokensConfig::blocks_per_sm>("0: a block takes one step; else resident blocks that walk",
                                             {0, 1, 2}),
    programmatic_launch<&FewTokensConfig::programmatic>(),
    tunable<&FewTokensConfig::fold_norm>("1: a norm is part of the products, 0: a launch before them",
                                         {0, 1}),
});

/// Loads of 16 bytes that a thread has under way: two rows of every block of 16.
std::int64_t loads(const LinearProblem& p, const FewTokensConfig& c) {
    return c.unroll * p.products() * c.rows / 8;
}
std::int64_t token_blocks(const FewTokensConfig& c) { return ceil_div(c.tokens, 8); }
std::int64_t registers(const LinearProblem& p, const FewTokensConfig& c) {
    const std::int64_t sums = p.products() * c.rows / 16 * token_blocks(c) * 4;
    const std::int64_t norm = c.fold_norm * (token_blocks(c) + 16);
    return 8 * loads(p, c) + sums + 4 * token_blocks(c) + 32 + norm;
}
/// The operand is x * norm_weight, before anything has brought it to unit size: more than fp16 may hold.
constexpr Constraint constraints[] = {
    elements_of_tensor_cores,
    more_than_a_token,
    rule("a block holds all tokens, up to 32",
         [](const LinearProblem& p, const FewTokensConfig& c) {
             return holds_tokens(p, c, tunables[index_of(&FewTokensConfig::tokens)]);
         }),
    rule("more than 32 tokens are wgmma's where in is a multiple of 8, and mma_tiles' where out is one, too",
         [](const LinearProblem& p, const DeviceTraits& t) {
             return p.tokens <= 32 || p.in % 8 != 0 || (p.out % 8 != 0 && !runs_on(wgmma, t));
         }),
    rule("blocks have 4 to 16 warps", [](const FewTokensConfig& c) { return c.threads() <= 512; }),
    rule("a thread keeps four to sixteen loads in flight",
         [](const LinearProblem& p, const FewTokensConfig& c) {
             return loads(p, c) >= 4 && loads(p, c) <= 16;
         }),
    rule("warps that share a row must all have columns",
         [](const LinearProblem& p, const FewTokensConfig& c) {
             return c.k_warps == 4 || (c.k_warps - 1) * 64 * ceil_div(c.unroll, 2) < p.in;
         }),
    registers_fit<registers>,
    norm_is_folded<mma_can_fold_norm>,
    resident_blocks_have_work,
    rows_exist,
    partials_fit,
    hint_needs_sm_90,
    programmatic_needs_sm_90<FewTokensConfig>,
};

double predict(const LinearProblem& p, const FewTokensConfig& c, const DeviceTraits& traits) {
    const double blocks = static_cast<double>(token_blocks(c));
    const auto accesses = static_cast<double>(8 / access_elements(p));
    const double shared_rows = static_cast<double>(c.rows * p.products());
    // An x costs a square, a product and half a conversion an element, and the norm's weight.
    const double folds = c.fold_norm != 0 ? 1.0 : 0.0;
    const double folding = folds * 8 * (28 * blocks + 12) / shared_rows;
    // A pair of instructions for each 16 rows and 8 tokens takes the tensor cores as long as a dozen others.
    return predict_us(p, c,
                      {.registers = registers(p, c),
                       .loads = static_cast<double>(loads(p, c)),
                       .latency_us = 0.9 + 0.3 * 16 / shared_rows * blocks,
                       .instructions = (4 + blocks * 8 * 16 / shared_rows) * accesses + blocks * 8 + folding,
                       .x_bytes = 8 * (blocks + folds) / shared_rows,
                       .bandwidth = c.rows == 16 ? 0.89 : 0.88,
                       .rest_us = 0.5},
                      traits);
}

std::optional<FewTokensConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const LinearProblem p(problem);
    if (p.tokens <= 2) return std::nullopt;  // gemv is faster
    FewTokensConfig c;
    c.tokens = p.tokens <= 4 ? 4 : p.tokens <= 8 ? 8 : p.tokens <= 16 ? 16 : 32;
    c.rows = p.tokens > 16 && !p.gated ? 32 : 16;
    c.k_warps = 8;
    c.row_warps = 1;
    c.fold_norm = p.norm && mma_can_fold_norm(p) && p.tokens <= 16 ? 1 : 0;
    c.unroll = p.tokens > 16 || p.gated ? 2 : 4;
    c.load_hint = 1;
    c.programmatic = traits.has_programmatic_launch() ? 1 : 0;
    if (!allowed(problem, {&mma, config_of(c)}, traits)) {
        c.k_warps = 4;
        c.rows = 16;
    }
    return c;
}

}  // namespace

const Variant mma{.name = "mma",
                  .summary = "weights stream through registers into warp-level tensor cores",
                  .source = "linear/mma.cu",
                  .min_arch = {8, 0, false},
                  .tunables = tunables,
                  .constraints = constraints,
                  .kernels = mma_kernels,
                  .plan = typed<mma_plan>,
                  .fallback = typed<fallback>,
                  .access_elements = typed<mma_access_elements>,
                  .predict_us = typed<predict>};

}  // namespace hone::linear
