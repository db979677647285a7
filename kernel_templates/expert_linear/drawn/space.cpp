#include <algorithm>

#include "kernel_templates/expert_linear/combine_rank.h"
#include "kernel_templates/expert_linear/drawn/plan.h"
#include "kernel_templates/expert_linear/drawn/room.cuh"
#include "kernel_templates/expert_linear/tiles_rank.h"
#include "kernel_templates/expert_linear/variants.h"
#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/kit/typed.h"
#include "kernel_templates/linear/wgmma/rules.h"

namespace hone::expert_linear {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&DrawnConfig::tile_m>("rows of the weight of a tile, gate and up together", {64, 128, 256}),
    tunable<&DrawnConfig::tile_n>("rows of x of a tile", {8, 16, 24, 32, 48, 64}),
    tunable<&DrawnConfig::consumers>("warpgroups that multiply", {1, 2}),
    tunable<&DrawnConfig::blocks_per_sm>("resident blocks a multiprocessor", {1, 2}),
    tunable<&DrawnConfig::swapped>("the weight is the left operand", {1}),
    tunable<&DrawnConfig::l2_hint>("1: weights leave level 2 first, x last", {0, 1}),
    tunable<&DrawnConfig::copied_x>("1: gathered rows are copied by place in a launch in front", {0, 1}),
    programmatic_launch<&DrawnConfig::programmatic>(),
});

constexpr Constraint constraints[] = {
    rule("tensor cores multiply fp16 and bf16",
         [](const ExpertProblem& p) { return p.dtype != Dtype::fp32; }),
    rule("rows must start at multiples of 16 bytes: in and out are multiples of 8",
         [](const ExpertProblem& p) { return p.in % 8 == 0 && p.out % 8 == 0; }),
    rule("sums have 12 steps of 64 columns at least, as many as a ring has stages",
         [](const ExpertProblem& p) { return p.in > 11 * 64; }),
    rule("up to 64 rows an expert: where memory decides",
         [](const ExpertProblem& p) { return p.rows_an_active() <= 64; }),
    rule("one token is gemv's", [](const ExpertProblem& p) { return p.tokens > 1; }),
    rule("an expert's share of the rows fits a tile, and fills half of one or of 16 rows",
         [](const ExpertProblem& p, const DrawnConfig& c) {
             const std::int64_t rows = p.rows_an_active();
             return c.tile_n >= rows && (c.tile_n <= 16 || c.tile_n <= 2 * rows);
         }),
    rule("warpgroups take whole blocks of 64 rows, of gate and of up",
         [](const ExpertProblem& p, const DrawnConfig& c) {
             return c.tile_m % (linear::gemm::block_rows * c.consumers * p.products()) == 0;
         }),
    rule("a thread's sums must fit its registers",
         [](const ExpertProblem& p, const DrawnConfig& c) {
             return linear::gemm::fits_registers(p.dense(1), geometry(p, c.dealt()));
         }),
    rule("two blocks a multiprocessor have one consumer each",
         [](const DrawnConfig& c) { return c.blocks_per_sm == 1 || c.consumers == 1; }),
    rule("copies in front are of gathered rows, and take time that 8 rows an expert make good",
         [](const ExpertProblem& p, const DrawnConfig& c) {
             return c.copied_x == 0 || (p.gather && p.rows_an_active() >= 8);
         }),
    rule("at least four stages must fit shared memory",
         [](const ExpertProblem& p, const DrawnConfig& c) { return geometry(p, c.dealt()).stages() >= 4; }),
    rule("the tiles that any routing needs can be counted",
         [](const ExpertProblem& p, const DrawnConfig& c) {
             return p.most_tiles(c.tile_n) * tiles_across(p, c.dealt()) < std::int64_t{1}
                                                                              << drawn::count_bits;
         }),
};

/// Modelled microseconds: what memory takes at the speed that it has for boxes of 128 bytes a row, the more
/// the more bytes are under way; an expert's second tile finds most of its weights in level 2.
double predict(const ExpertProblem& p, const DrawnConfig& c, const DeviceTraits& traits) {
    const linear::gemm::Geometry g = geometry(p, c.dealt());
    const double rows = static_cast<double>(p.x_rows() * p.in + p.out_rows() * p.out);
    const double tiles = static_cast<double>(routed_tiles(p, c.tile_n));
    const double again = tiles / static_cast<double>(p.with_rows());
    const double bytes = p.weight_bytes() + rows * static_cast<double>(p.element_bytes());
    const double under_way =
        static_cast<double>(g.stages() * g.left_bytes() * c.blocks_per_sm) / (160.0 * 1024);
    const double share = 0.92 * std::min(1.0, 0.95 + 0.05 * under_way);
    const double memory_us = bytes / (1e-6 * share * traits.memory_bytes_per_s) * (1 + 0.25 * (again - 1));
    const double copied_us = c.copied_x != 0 ? copies_us(p, traits, c.programmatic != 0) : 0.0;
    return (c.programmatic != 0 ? 3.5 : 4.5) + memory_us + combine_us(p, traits, c.programmatic != 0) +
           copied_us + 0.02 * static_cast<double>(c.tile_n);
}

/// Where it was measured to gain: gated, more rows an expert than strips take, and up to 16.
std::optional<DrawnConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const ExpertProblem p(problem);
    if (!p.gated || p.rows_an_active() <= 4 || p.rows_an_active() > 16) return std::nullopt;
    const DrawnConfig start{.programmatic = 1};
    const std::vector<DrawnConfig> configs = combinations({start}, tunables, {&DrawnConfig::tile_n});
    return best_of(problem, drawn_tiles, std::span<const DrawnConfig>(configs), traits);
}

}  // namespace

const Variant drawn_tiles{
    .name = "drawn",
    .summary = "few rows an expert: wgmma's tiles with the weight as the left operand, which blocks draw",
    .source = "expert_linear/drawn/kernel.cu",
    .min_arch = {9, 0, true},
    .tunables = tunables,
    .constraints = constraints,
    .kernels = drawn_kernels,
    .plan = typed<drawn_plan>,
    .fallback = typed<fallback>,
    .access_elements = typed<drawn_access_elements>,
    .predict_us = typed<predict>};

}  // namespace hone::expert_linear
