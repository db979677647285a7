#include "kernel_templates/expert_linear/few_rows_rank.h"
#include "kernel_templates/expert_linear/strips_plan.h"
#include "kernel_templates/expert_linear/variants.h"
#include "kernel_templates/kit/fallbacks.h"

namespace hone::expert_linear {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&StripsConfig::tile_rows>("rows of x of a block", {4, 8}),
    tunable<&StripsConfig::rows>("rows of the weight that a warp multiplies together", {2, 4, 8, 16}),
    tunable<&StripsConfig::k_warps>("warps that share a row", {1, 2, 4, 8}),
    tunable<&StripsConfig::row_warps>("groups of them in a block", {1, 2, 4, 8}),
    tunable<&StripsConfig::unroll>("strips of each row that a warp keeps in flight", {1, 2, 4}),
    tunable<&StripsConfig::load_hint>("of weights: 1 not into level 1, 2 streaming", {1, 2}),
    programmatic_launch<&StripsConfig::programmatic>(),
});

/// Right operands that a warp's rows fill.
std::int64_t row_blocks(const ExpertProblem& p, const StripsConfig& c) {
    return p.products() * c.rows / c.mma_rows();
}
/// Loads of 16 bytes that a thread has under way.
std::int64_t loads(const ExpertProblem& p, const StripsConfig& c) { return c.unroll * row_blocks(p, c); }
std::int64_t registers(const ExpertProblem& p, const StripsConfig& c) {
    return 8 * loads(p, c) + 4 * row_blocks(p, c) + 44;
}
std::int64_t partial_bytes(const ExpertProblem& p, const StripsConfig& c) {
    return 4 * c.row_warps * c.k_warps * p.products() * c.tile_rows * (c.rows + 4);
}

constexpr Constraint constraints[] = {
    rule("tensor cores multiply fp16 and bf16",
         [](const ExpertProblem& p) { return p.dtype != Dtype::fp32; }),
    rule("rows must start at multiples of 16 bytes: in is a multiple of 8",
         [](const ExpertProblem& p) { return p.in % 8 == 0; }),
    rule("one token is gemv's", [](const ExpertProblem& p) { return p.tokens > 1; }),
    rule("a block holds an expert's share of the rows, up to 8",
         [](const ExpertProblem& p, const StripsConfig& c) { return p.rows_an_active() <= c.tile_rows; }),
    rule("rows fill instructions, up to four of them",
         [](const StripsConfig& c) { return c.rows % c.mma_rows() == 0 && c.rows <= 4 * c.mma_rows(); }),
    rule("blocks have 4 or 8 warps",
         [](const StripsConfig& c) { return c.threads() >= 128 && c.threads() <= 256; }),
    rule("a thread keeps two to eight loads in flight",
         [](const ExpertProblem& p, const StripsConfig& c) { return loads(p, c) >= 2 && loads(p, c) <= 8; }),
    rule("warps that share a row must all have columns",
         [](const ExpertProblem& p, const StripsConfig& c) {
             return c.k_warps == 1 || (c.k_warps - 1) * c.unroll * 32 * c.parts() < p.in;
         }),
    rule("loads and sums must fit the registers of 512 threads a multiprocessor",
         [](const ExpertProblem& p, const StripsConfig& c) { return registers(p, c) <= 128 + 8; }),
    rule("a warp's rows must exist",
         [](const ExpertProblem& p, const StripsConfig& c) { return p.out >= c.rows; }),
    rule("the warps' partial sums must fit 48 KiB",
         [](const ExpertProblem& p, const StripsConfig& c) { return partial_bytes(p, c) <= 48 * 1024; }),
    programmatic_needs_sm_90<StripsConfig>,
};

double predict(const ExpertProblem& p, const StripsConfig& c, const DeviceTraits& traits) {
    const double shared = static_cast<double>(row_blocks(p, c));
    return few_rows_us(p, c, 1.7,
                       {.registers = registers(p, c),
                        .loads = static_cast<double>(loads(p, c)),
                        .latency_us = 1.2 + 0.2 / shared,
                        .instructions = 10 + 10 / shared,
                        .x_bytes = 2 / shared,
                        .bandwidth = 0.95,
                        .rest_us = 0.6},
                       traits);
}

/// Beyond 4 rows an expert some have more than a tile holds, and read their weights twice.
std::optional<StripsConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    if (ExpertProblem(problem).rows_an_active() > 4) return std::nullopt;
    std::vector<StripsConfig> starts;
    for (const std::int64_t k_warps : {8, 4, 2, 1}) {
        starts.push_back({.k_warps = k_warps,
                          .row_warps = 8 / k_warps,
                          .programmatic = traits.has_programmatic_launch() ? 1 : 0});
    }
    const std::vector<StripsConfig> configs = combinations(
        starts, tunables, {&StripsConfig::tile_rows, &StripsConfig::rows, &StripsConfig::unroll});
    return best_of(problem, strips, std::span<const StripsConfig>(configs), traits);
}

}  // namespace

const Variant strips{.name = "strips",
                     .summary =
                         "up to 8 rows an expert: weights stream in strips of rows through registers into "
                         "warps' tensor cores",
                     .source = "expert_linear/strips.cu",
                     .min_arch = {8, 0, false},
                     .tunables = tunables,
                     .constraints = constraints,
                     .kernels = strips_kernels,
                     .plan = typed<strips_plan>,
                     .fallback = typed<fallback>,
                     .access_elements = typed<strips_access_elements>,
                     .predict_us = typed<predict>};

}  // namespace hone::expert_linear
