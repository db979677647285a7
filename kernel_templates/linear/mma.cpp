#include "kernel_templates/linear/few_tokens.h"

namespace hone::linear {
namespace {

using namespace few_tokens;

constexpr Tunable tunables[] = {
    {"tokens", "tokens of a block", {4, 8, 16, 32}},
    {"rows", "rows of the weight that a warp multiplies together", {16, 32}},
    {"k_warps", "warps that share a row", {4, 8, 16}},
    {"row_warps", "groups of them in a block", {1, 2}},
    {"unroll", "accesses to each row that a thread keeps in flight", {1, 2, 4}},
    {"load_hint", "of weights: 1 not into level 1, 3 and first to leave level 2", {1, 3}},
    {"blocks_per_sm", "0: a block takes one step; else resident blocks that walk", {0, 1, 2}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
    {"fold_norm", "1: a norm is part of the products, 0: a launch before them", {0, 1}},
};

/// Loads of 16 bytes that a thread has under way: two rows of every block of 16.
std::int64_t loads(const LinearProblem& p, const Config& config) {
    return config[unroll] * p.products() * config[rows] / 8;
}
std::int64_t token_blocks(const Config& config) { return ceil_div(config[block_tokens], 8); }
std::int64_t registers(const LinearProblem& p, const Config& config) {
    const std::int64_t sums = p.products() * config[rows] / 16 * token_blocks(config) * 4;
    const std::int64_t norm = config[fold_norm] * (token_blocks(config) + 16);
    return 8 * loads(p, config) + sums + 4 * token_blocks(config) + 32 + norm;
}
/// The operand is x * norm_weight, before anything has brought it to unit size: more than fp16 may hold.
constexpr bool can_fold_norm(const LinearProblem& p) { return p.dtype == Dtype::bf16; }

constexpr Constraint constraints[] = {
    {"tensor cores multiply fp16 and bf16",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return linear_problem(p).dtype != Dtype::fp32;
     }},
    {"rows must start at multiples of 16 bytes: in is a multiple of 8",
     [](const Problem& p, const Config&, const DeviceTraits&) { return linear_problem(p).in % 8 == 0; }},
    {"one token is gemv's",
     [](const Problem& p, const Config&, const DeviceTraits&) { return linear_problem(p).tokens > 1; }},
    {"a block holds all tokens, up to 32",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return holds_tokens(linear_problem(p), c, tunables[block_tokens]);
     }},
    {"more than 32 tokens are wgmma's and mma_tiles', where out is a multiple of 8",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return linear_problem(p).tokens <= 32 || linear_problem(p).out % 8 != 0;
     }},
    {"blocks have 4 to 16 warps",
     [](const Problem&, const Config& c, const DeviceTraits&) { return threads(c) <= 512; }},
    {"a thread keeps four to sixteen loads in flight",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return loads(linear_problem(p), c) >= 4 && loads(linear_problem(p), c) <= 16;
     }},
    {"warps that share a row must all have columns",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[k_warps] == 4 || (c[k_warps] - 1) * 64 * ceil_div(c[unroll], 2) < linear_problem(p).in;
     }},
    registers_fit<registers>,
    norm_is_folded<can_fold_norm>,
    resident_blocks_have_work,
    rows_exist,
    partials_fit,
    hint_needs_sm_90,
    programmatic_needs_sm_90<programmatic>,
};

Plan plan(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    return few_tokens::plan("linear_mma", problem, config, traits);
}

double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    const double blocks = static_cast<double>(token_blocks(config));
    const double shared_rows = static_cast<double>(config[rows] * p.products());
    // Of x: a square, a product and half a conversion an element, and the norm's weight.
    const double folds = config[fold_norm] != 0 ? 1.0 : 0.0;
    const double folding = folds * 8 * (28 * blocks + 12) / shared_rows;
    // A pair of instructions for each 16 rows and 8 tokens takes the tensor cores as long as a dozen others.
    return predict_us(problem, config,
                      {.registers = registers(p, config),
                       .loads = static_cast<double>(loads(p, config)),
                       .latency_us = 0.9 + 0.3 * 16 / shared_rows * blocks,
                       .instructions = 4 + blocks * 8 + blocks * 8 * 16 / shared_rows + folding,
                       .x_bytes = 8 * (blocks + folds) / shared_rows,
                       .bandwidth = config[rows] == 16 ? 0.89 : 0.88,
                       .rest_us = 0.5},
                      traits);
}

std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    if (p.tokens <= 2) return std::nullopt;  // gemv is faster
    Config config;
    config[block_tokens] = p.tokens <= 4 ? 4 : p.tokens <= 8 ? 8 : p.tokens <= 16 ? 16 : 32;
    config[rows] = p.tokens > 16 && !p.gated ? 32 : 16;
    config[k_warps] = 8;
    config[row_warps] = 1;
    config[fold_norm] = p.norm && can_fold_norm(p) && p.tokens <= 16 ? 1 : 0;
    config[unroll] = p.tokens > 16 || p.gated ? 2 : 4;
    config[load_hint] = 1;
    config[programmatic] = traits.has_programmatic_launch() ? 1 : 0;
    if (!allowed(problem, {&mma, config}, traits)) {
        config[k_warps] = 4;
        config[rows] = 16;
    }
    return config;
}

}  // namespace

const Variant mma{.name = "mma",
                  .summary = "weights stream through registers into warp-level tensor cores",
                  .source = "linear/mma.cu",
                  .min_arch = {8, 0, false},
                  .tunables = tunables,
                  .constraints = constraints,
                  .plan = plan,
                  .fallback = fallback,
                  .access_elements = [](const Problem&, const Config&) { return std::int64_t{8}; },
                  .predict_us = predict};

}  // namespace hone::linear
