#include <algorithm>

#include "kernel_templates/expert_linear/combine_rank.h"
#include "kernel_templates/expert_linear/tiles_rank.h"
#include "kernel_templates/expert_linear/variants.h"
#include "kernel_templates/expert_linear/wgmma/plan.h"
#include "kernel_templates/kit/clock.h"
#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/linear/wgmma/rank.h"
#include "kernel_templates/linear/wgmma/rules.h"

namespace hone::expert_linear {
namespace {

constexpr auto tunables = tunables_of({
    read_with<&WgmmaConfig::swapped>(
        tunable<&WgmmaConfig::tile_m>("rows of a tile: of x; swapped: results a row", {64, 128, 256})),
    read_with<&WgmmaConfig::swapped>(
        tunable<&WgmmaConfig::tile_n>("columns of a tile: results a row; swapped: rows of x",
                                      {8, 16, 24, 32, 48, 64, 96, 128, 144, 152, 192, 256})),
    tunable<&WgmmaConfig::consumers>("warpgroups that multiply", {1, 2}),
    tunable<&WgmmaConfig::blocks_per_sm>("resident blocks a multiprocessor", {1, 2}),
    tunable<&WgmmaConfig::swapped>("1: the weight is the left operand", {0, 1}),
    tunable<&WgmmaConfig::tail_split>(
        "1: tiles of a last round that few blocks take are split over all of them", {0, 1}),
    tunable<&WgmmaConfig::l2_hint>("1: weights leave level 2 first, x last", {0, 1}),
    tunable<&WgmmaConfig::copied_x>("1: gathered rows are copied by place in a launch in front", {0, 1}),
    programmatic_launch<&WgmmaConfig::programmatic>(),
});

constexpr Constraint constraints[] = {
    rule("tensor cores multiply fp16 and bf16",
         [](const ExpertProblem& p) { return p.dtype != Dtype::fp32; }),
    rule("rows must start at multiples of 16 bytes: in and out are multiples of 8",
         [](const ExpertProblem& p) { return p.in % 8 == 0 && p.out % 8 == 0; }),
    rule("warpgroups take whole blocks of 64 rows",
         [](const ExpertProblem& p, const WgmmaConfig& c) {
             const linear::gemm::Geometry g = geometry(p, c);
             return g.tile_m % (linear::gemm::block_rows * g.sharers() * (g.gated_rows() ? 2 : 1)) == 0;
         }),
    rule("gate and up columns meet in one thread, and staged rows have 16 results at least",
         [](const ExpertProblem& p, const WgmmaConfig& c) {
             const linear::gemm::Geometry g = geometry(p, c);
             return (!g.gated_columns() || g.tile_n % 16 == 0) && (g.swapped || g.result_columns() % 16 == 0);
         }),
    rule("a thread's sums must fit its registers",
         [](const ExpertProblem& p, const WgmmaConfig& c) {
             return linear::gemm::fits_registers(p.dense(1), geometry(p, c));
         }),
    rule("one consumer is for 64 rows of results; two blocks a multiprocessor have one consumer each",
         [](const ExpertProblem& p, const WgmmaConfig& c) {
             return (c.consumers != 1 || geometry(p, c).result_rows() == 64) &&
                    (c.blocks_per_sm == 1 || c.consumers == 1);
         }),
    rule("at least three stages must fit shared memory",
         [](const ExpertProblem& p, const WgmmaConfig& c) { return geometry(p, c).stages() >= 3; }),
    rule("with the weight left up to 64 rows an expert share a tile, more have tiles of 64, many of 128",
         [](const ExpertProblem& p, const WgmmaConfig& c) {
             const std::int64_t rows = p.rows_an_active();
             return c.swapped == 0 || c.tile_n >= (rows <= 64 ? rows : rows <= 128 ? 64 : 128);
         }),
    rule("from 128 on, columns of results are multiples of 64",
         [](const WgmmaConfig& c) { return c.swapped != 0 || c.tile_n % 64 == 0 || c.tile_n < 128; }),
    rule("up to 128 rows are gathered for a tile: their numbers stay in a producer's registers",
         [](const ExpertProblem& p, const WgmmaConfig& c) {
             return !p.gather || c.copied_x != 0 || tile_rows(c) <= 128;
         }),
    rule("copies in front are of gathered rows, and take time that 8 rows an expert make good",
         [](const ExpertProblem& p, const WgmmaConfig& c) {
             return c.copied_x == 0 || (p.gather && p.rows_an_active() >= 8);
         }),
    rule("half of a tile's rows must exist, or of two tiles'",
         [](const ExpertProblem& p, const WgmmaConfig& c) {
             const std::int64_t least = c.swapped != 0 ? 16 : 64;
             return tile_rows(c) <= least || tile_rows(c) < 4 * p.rows_an_active();
         }),
    rule("a last round is split in wide tiles with x as the left operand, of more than 64 rows an expert",
         [](const ExpertProblem& p, const WgmmaConfig& c) {
             return c.tail_split == 0 || (c.swapped == 0 && c.consumers == 2 && p.rows_an_active() > 64);
         }),
    rule("weights that several tiles of rows need stay in level 2",
         [](const ExpertProblem& p, const WgmmaConfig& c) {
             return c.l2_hint == 0 || p.rows_an_active() <= tile_rows(c);
         }),
    rule("tiles with x as the left operand have 64 columns at least, and are for more than 16 rows an expert",
         [](const ExpertProblem& p, const WgmmaConfig& c) {
             return c.swapped != 0 || (c.tile_n >= 64 && p.rows_an_active() > 16);
         }),
};

/// Modelled microseconds: rounds of tiles, each bound by the tensor cores or by the latency of a stage; and
/// the memory.
double predict(const ExpertProblem& p, const WgmmaConfig& c, const DeviceTraits& traits) {
    const linear::gemm::Geometry g = geometry(p, c);
    const double tiles = static_cast<double>(routed_tiles(p, tile_rows(c)) * tiles_across(p, c));
    const double places = static_cast<double>(traits.sm_count * c.blocks_per_sm);
    const double full = std::floor(tiles / places);
    const double rest = tiles - full * places;
    const double parts =
        c.tail_split != 0 && rest > 0 ? std::clamp(std::floor(places / rest), 1.0, 8.0) : 1.0;
    const bool gathers = p.gather && c.copied_x == 0;
    // Copies of 16 bytes take the issue slots of products; beside few rows memory hides them.
    const double a_row = c.swapped != 0 ? 0.04 : 2.0;
    const double gathered = gathers ? a_row * static_cast<double>(tile_rows(c)) : 0.0;
    const double copied_us = c.copied_x != 0 ? copies_us(p, traits, c.programmatic != 0) : 0.0;
    const double steps = std::ceil(static_cast<double>(p.in) / 64);
    const double writing = 0.025 * static_cast<double>(c.tile_m * c.tile_n);
    // Of a round of so many tiles, the last one with fewer blocks beside each other.
    const auto round_cycles = [&](double count, double share) {
        const double together =
            std::min(static_cast<double>(c.blocks_per_sm), std::ceil(count / traits.sm_count));
        const double step = std::max(1.2 * linear::gemm::stage_cycles(g) * together, 1000.0 / g.stages());
        return share * steps * (step + gathered * together) + 880 + writing * together;
    };
    const double joined = parts > 1 ? 3000 + parts * g.partial_bytes() / 24.0 : 0.0;
    const double cycles =
        full * round_cycles(places, 1) + (rest > 0 ? round_cycles(rest, 1 / parts) : 0.0) + joined;
    const double compute_us = cycles / busy_cycles_per_us(traits);

    const double rows = static_cast<double>(p.x_rows() * p.in + p.out_rows() * p.out);
    const double bytes = p.weight_bytes() + rows * static_cast<double>(p.element_bytes());
    const double memory_us = bytes / (0.92e-6 * traits.memory_bytes_per_s);
    return (c.programmatic != 0 ? 3.5 : 4.5) + std::max(compute_us, memory_us) +
           0.12 * std::min(compute_us, memory_us) + combine_us(p, traits, c.programmatic != 0) + copied_us;
}

/// Rows of x of a tile of which one or two hold the fullest expert of a few, where each has so many; 0: none
/// was measured. On an H200 2 to 13 % ahead of tiles of 128 and 64 rows with 128 and 256 rows an expert.
constexpr std::int64_t rows_that_hold(std::int64_t rows) {
    if (rows > 112 && rows <= 132) return 152;
    return rows > 240 && rows <= 260 ? 144 : 0;
}

/// Shapes of tiles as linear's are proven. Measured on an H100: up to 16 rows a tile one block a
/// multiprocessor, whose ring is deeper, draws more than two do; and launched early, neither copies in front
/// nor a long sum over slots gain what they take from the product beside them.
std::optional<WgmmaConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const ExpertProblem p(problem);
    if (p.rows_an_active() < 2) return std::nullopt;  // gemv is faster
    const std::int64_t gates = p.gated ? 2 : 1;
    const WgmmaConfig few{.tile_m = 64 * gates, .swapped = 1, .programmatic = 1};
    WgmmaConfig some = few;
    some.blocks_per_sm = 2;
    const bool is_long = p.combine && p.rows_an_active() > 256;
    const WgmmaConfig straight{.tile_m = 128, .consumers = 2, .programmatic = is_long ? 0 : 1};
    const WgmmaConfig wide{.tile_m = 256, .consumers = 2, .swapped = 1, .programmatic = 1};
    std::vector<WgmmaConfig> configs =
        combinations({few, some, wide, straight}, tunables,
                     {&WgmmaConfig::tile_n, &WgmmaConfig::tail_split, &WgmmaConfig::copied_x});
    const bool has_few = p.rows_an_active() <= 64;
    std::erase_if(configs, [&](const WgmmaConfig& c) {
        if (c.swapped == 0) return has_few || (p.gather && (c.copied_x == 0 || c.tail_split != 0));
        const bool fits = c.consumers == 2 ? c.tile_n >= 64 : (c.blocks_per_sm == 1) == (c.tile_n <= 16);
        return !has_few || c.copied_x != 0 || !fits;
    });
    if (const std::int64_t n = rows_that_hold(p.rows_an_active()); n != 0) {
        configs.push_back({.tile_m = 128,
                           .tile_n = n,
                           .consumers = p.gated ? 1 : 2,
                           .swapped = 1,
                           .copied_x = p.gather ? 1 : 0,
                           .programmatic = is_long ? 0 : 1});
    }
    for (WgmmaConfig& c : configs) {
        if (c.copied_x != 0) c.programmatic = 0;
    }
    return best_of(problem, wgmma, std::span<const WgmmaConfig>(configs), traits);
}

}  // namespace

const Variant wgmma{
    .name = "wgmma",
    .summary = "warpgroup tensor cores fed by tensor copies, gathered rows by copies of 16 bytes",
    .source = "expert_linear/wgmma/kernel.cu",
    .min_arch = {9, 0, true},
    .tunables = tunables,
    .constraints = constraints,
    .kernels = wgmma_kernels,
    .plan = typed<wgmma_plan>,
    .fallback = typed<fallback>,
    .access_elements = typed<wgmma_access_elements>,
    .predict_us = typed<predict>};

}  // namespace hone::expert_linear
