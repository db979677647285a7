#include <array>

#include "kernel_templates/linear/few_tokens.h"

namespace hone::linear {
namespace {

using namespace few_tokens;

constexpr Tunable tunables[] = {
    {"tokens", "tokens of a block", {1, 2, 4, 8}},
    {"rows", "rows of the weight that a warp multiplies together", {1, 2, 4}},
    {"k_warps", "warps that share a row", {1, 2, 4, 8}},
    {"row_warps", "groups of them in a block", {1, 2, 4, 8}},
    {"unroll", "accesses to each row that a thread keeps in flight", {1, 2, 4}},
    {"load_hint", "of weights: 1 not into level 1, 3 and first to leave level 2", {1, 3}},
    {"blocks_per_sm", "0: a block takes one step; else resident blocks that walk", {0, 2, 4}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
    {"fold_norm", "1: a norm is part of the products, 0: a launch before them", {0, 1}},
};

std::int64_t elements_per_access(const LinearProblem& p) { return 16 / p.element_bytes(); }

/// Loads of 16 bytes that a thread has under way.
std::int64_t loads(const LinearProblem& p, const Config& config) {
    return config[unroll] * p.products() * config[rows];
}
std::int64_t registers(const LinearProblem& p, const Config& config) {
    const std::int64_t norm = config[fold_norm] * 2 * (config[block_tokens] + elements_per_access(p));
    return 8 * loads(p, config) + p.products() * config[rows] * config[block_tokens] +
           6 * config[block_tokens] + 8 + norm;
}
constexpr bool can_fold_norm(const LinearProblem&) { return true; }

constexpr Constraint constraints[] = {
    {"rows must start at multiples of 16 bytes",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return linear_problem(p).in % elements_per_access(linear_problem(p)) == 0;
     }},
    {"a block holds all tokens, up to 8",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return linear_problem(p).tokens <= 8 && holds_tokens(linear_problem(p), c, tunables[block_tokens]);
     }},
    {"blocks have 4 to 8 warps", [](const Problem&, const Config& c,
                                    const DeviceTraits&) { return threads(c) >= 128 && threads(c) <= 256; }},
    {"a thread keeps two to eight loads in flight",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return loads(linear_problem(p), c) >= 2 && loads(linear_problem(p), c) <= 8;
     }},
    {"warps that share a row must all have columns",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[k_warps] == 1 ||
                (c[k_warps] - 1) * c[unroll] * 512 < linear_problem(p).in * linear_problem(p).element_bytes();
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
    return few_tokens::plan("linear_gemv", problem, config, traits);
}

double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    const double held_tokens = static_cast<double>(config[block_tokens]);
    const double elements = static_cast<double>(elements_per_access(p));
    const double shared_rows = static_cast<double>(config[rows] * p.products());
    const double unpack = p.dtype == Dtype::fp32 ? 0.0 : elements;
    const double folds = config[fold_norm] != 0 ? 1.0 : 0.0;  // the norm's weight, a square and a product
    const double each_x = held_tokens * (unpack + 4 + folds * 2 * elements) + folds * (unpack + 4);
    return predict_us(problem, config,
                      {.registers = registers(p, config),
                       .loads = static_cast<double>(loads(p, config)),
                       .latency_us = 0.8,
                       .instructions = 4 + unpack + elements * held_tokens + each_x / shared_rows,
                       .x_bytes = (held_tokens + folds) / shared_rows,
                       .bandwidth = 0.96 - 0.015 * held_tokens,
                       .rest_us = 0.25 * (held_tokens - 1)},
                      traits);
}

std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    Config config;
    config[block_tokens] = p.tokens <= 1 ? 1 : p.tokens <= 2 ? 2 : p.tokens <= 4 ? 4 : 8;
    config[rows] = p.tokens <= 2 ? 1 : 2;
    config[unroll] = p.tokens <= 2 ? 2 : 1;
    config[load_hint] = 1;
    config[programmatic] = traits.has_programmatic_launch() ? 1 : 0;
    config[fold_norm] = p.norm ? 1 : 0;
    std::array<Config, 4> configs;  // as many warps share a row as have columns
    for (std::size_t i = 0; i < configs.size(); ++i) {
        configs[i] = config;
        configs[i][k_warps] = 8 >> i;
        configs[i][row_warps] = 1 << i;
    }
    return best_of(problem, gemv, configs, traits);
}

}  // namespace

const Variant gemv{
    .name = "gemv",
    .summary = "1 to 8 tokens: weights stream through registers, products on the CUDA cores",
    .source = "linear/gemv.cu",
    .tunables = tunables,
    .constraints = constraints,
    .plan = plan,
    .fallback = fallback,
    .access_elements = [](const Problem& p, const Config&) { return elements_per_access(linear_problem(p)); },
    .predict_us = predict};

}  // namespace hone::linear
