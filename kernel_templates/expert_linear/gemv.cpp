#include "kernel_templates/expert_linear/few_rows_rank.h"
#include "kernel_templates/expert_linear/gemv_plan.h"
#include "kernel_templates/expert_linear/variants.h"
#include "kernel_templates/kit/fallbacks.h"

namespace hone::expert_linear {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&GemvConfig::tile_rows>("rows of x of a block", {1, 2, 4, 8}),
    tunable<&GemvConfig::rows>("rows of the weight that a warp multiplies together", {1, 2, 4}),
    tunable<&GemvConfig::k_warps>("warps that share a row", {1, 2, 4, 8}),
    tunable<&GemvConfig::row_warps>("groups of them in a block", {1, 2, 4, 8}),
    tunable<&GemvConfig::unroll>("accesses to each row that a thread keeps in flight", {1, 2, 4}),
    tunable<&GemvConfig::load_hint>("of weights: 1 not into level 1, 2 streaming", {1, 2}),
    programmatic_launch<&GemvConfig::programmatic>(),
});

std::int64_t elements_per_access(const ExpertProblem& p) { return 16 / p.element_bytes(); }
/// Loads of 16 bytes that a thread has under way.
std::int64_t loads(const ExpertProblem& p, const GemvConfig& c) { return c.unroll * p.products() * c.rows; }
std::int64_t registers(const ExpertProblem& p, const GemvConfig& c) {
    return 8 * loads(p, c) + p.products() * c.rows * c.tile_rows +
           (2 + elements_per_access(p)) * c.tile_rows + 24;
}

constexpr Constraint constraints[] = {
    rule("rows must start at multiples of 16 bytes",
         [](const ExpertProblem& p) { return p.in % elements_per_access(p) == 0; }),
    rule("a block holds an expert's share of the rows, up to 8, and up to four times as many",
         [](const ExpertProblem& p, const GemvConfig& c) {
             return p.rows_an_active() <= c.tile_rows && c.tile_rows <= 4 * p.rows_an_active();
         }),
    rule("blocks have 4 to 8 warps",
         [](const GemvConfig& c) { return c.threads() >= 128 && c.threads() <= 256; }),
    rule("a thread keeps two to eight loads in flight",
         [](const ExpertProblem& p, const GemvConfig& c) { return loads(p, c) >= 2 && loads(p, c) <= 8; }),
    rule("warps that share a row must all have columns",
         [](const ExpertProblem& p, const GemvConfig& c) {
             return c.k_warps == 1 || (c.k_warps - 1) * c.unroll * 512 < p.in * p.element_bytes();
         }),
    rule("loads and sums must fit a thread's registers",
         [](const ExpertProblem& p, const GemvConfig& c) { return registers(p, c) <= 204; }),
    rule("a warp's rows must exist",
         [](const ExpertProblem& p, const GemvConfig& c) { return p.out >= c.rows; }),
    programmatic_needs_sm_90<GemvConfig>,
};

double predict(const ExpertProblem& p, const GemvConfig& c, const DeviceTraits& traits) {
    const double held = static_cast<double>(c.tile_rows);
    const double elements = static_cast<double>(elements_per_access(p));
    const double shared = static_cast<double>(c.rows * p.products());
    const double unpack = p.dtype == Dtype::fp32 ? 0.0 : elements;
    return few_rows_us(p, c, 2.0,
                       {.registers = registers(p, c),
                        .loads = static_cast<double>(loads(p, c)),
                        .latency_us = 0.83,
                        .instructions = 4 + unpack + elements * held + held * (unpack + 4) / shared,
                        .x_bytes = held / shared,
                        .bandwidth = 0.94 - 0.015 * held,
                        .rest_us = 0.25 * (held - 1)},
                       traits);
}

std::optional<GemvConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const ExpertProblem p(problem);
    GemvConfig c{.rows = p.rows_an_active() <= 2 ? 1 : 2, .unroll = p.rows_an_active() <= 2 ? 2 : 1};
    while (c.tile_rows < 8 && c.tile_rows < p.rows_an_active()) c.tile_rows *= 2;
    c.programmatic = traits.has_programmatic_launch() ? 1 : 0;
    // Two batches of a row for each of the warps that share it, where it is so long: measured on an H100, 1
    // to 4 % over a warp a row.
    const std::int64_t two_batches = 2 * c.unroll * 32 * elements_per_access(p);
    while (c.k_warps < 4 && 2 * c.k_warps * two_batches <= p.in) c.k_warps *= 2;
    c.row_warps = 8 / c.k_warps;
    const GemvConfig configs[] = {c};
    return best_of(problem, gemv, std::span<const GemvConfig>(configs), traits);
}

}  // namespace

const Variant gemv{
    .name = "gemv",
    .summary = "up to 8 rows an expert: weights stream through registers, products on the CUDA cores",
    .source = "expert_linear/gemv.cu",
    .tunables = tunables,
    .constraints = constraints,
    .kernels = gemv_kernels,
    .plan = typed<gemv_plan>,
    .fallback = typed<fallback>,
    .access_elements = typed<gemv_access_elements>,
    .predict_us = typed<predict>};

}  // namespace hone::expert_linear
