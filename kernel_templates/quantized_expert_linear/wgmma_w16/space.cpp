#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernel_templates/kit/clock.h"
#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/quantized_expert_linear/rank.h"
#include "kernel_templates/quantized_expert_linear/variants.h"
#include "kernel_templates/quantized_expert_linear/wgmma_w16/plan.h"
#include "kernel_templates/quantized_linear/wgmma_w16/stages.h"

namespace hone::quantized_expert_linear {
namespace {

using expert_linear::WgmmaConfig;
using linear::gemm::Geometry;

constexpr auto tile_tunables = tunables_of({
    tunable<&WgmmaConfig::tile_m>("rows of a tile: of the weight; gated: of both", {64, 128, 256}),
    tunable<&WgmmaConfig::tile_n>("columns of a tile: rows of x",
                                  {8, 16, 24, 32, 48, 64, 96, 128, 144, 160, 192, 256}),
    tunable<&WgmmaConfig::consumers>("warpgroups that multiply", {1, 2, 4}),
    tunable<&WgmmaConfig::blocks_per_sm>("resident blocks a multiprocessor", {1, 2, 3}),
    tunable<&WgmmaConfig::swapped>("the weight is the left operand", {1}),
    tunable<&WgmmaConfig::tail_split>("1: tiles of a last round are split over all blocks", {0}),
    tunable<&WgmmaConfig::l2_hint>("1: weights leave level 2 first, x last", {0, 1}),
    tunable<&WgmmaConfig::copied_x>("1: gathered rows are copied by place in a launch in front", {0, 1}),
    programmatic_launch<&WgmmaConfig::programmatic>(),
});
constexpr auto tunables =
    tunables_of(tile_tunables,
                {tunable<&WgmmaW16Config::stages_together>(
                     "stages between whose products the tensor cores do not wait; 0: all", {0, 1, 2, 4}),
                 tunable<&WgmmaW16Config::narrow_n>(
                     "columns that are multiplied where an expert's last rows are so few; 0: all of a tile's",
                     {0, 32, 64})});

/// A consumer's sums, fragments, codes and addresses against what its thread has. Without a pause there are
/// two sets of fragments and of codes.
bool fits_registers(const QuantizedExpertProblem& p, const Geometry& g, const WgmmaW16Config& c) {
    const int steady = c.stages_together == 0 ? 16 + (c.narrow_n != 0 ? 8 : 0) : 0;
    const int used = g.sums() + 72 + (p.gated ? 16 : 0) + (p.zeros ? 8 : 0) + steady;
    const w16::RoleRegisters registers = w16::registers_of(g, p.gather && c.copied_x == 0);
    // An instruction's sums must fit what the launch gives, too.
    return used <= registers.consumer && g.tile_n / 2 + 30 <= registers.launched;
}

constexpr Constraint constraints[] = {
    rule("codes of 4 or 8 bits that stand in blocks are multiplied with 16-bit x",
         [](const QuantizedExpertProblem& p) { return p.is_packed(); }),
    rule("codes are copied 16 bytes at a time, and rows of x and of results start there: in and out are "
         "multiples of 16",
         [](const QuantizedExpertProblem& p) { return p.in % 16 == 0 && p.out % 16 == 0; }),
    rule("warpgroups take one or two blocks of 64 rows, of gate and up one each",
         [](const QuantizedExpertProblem& p, const WgmmaW16Config& c) {
             const Geometry g = geometry(p, c);
             return g.tile_m % (64 * g.sharers()) == 0 && g.row_blocks() <= 2 &&
                    (!g.gated || g.row_blocks() == 2);
         }),
    rule("a thread's sums, fragments and codes must fit its registers",
         [](const QuantizedExpertProblem& p, const WgmmaW16Config& c) {
             return fits_registers(p, geometry(p, c), c);
         }),
    rule(
        "at least three stages must fit shared memory, and two beside those that are worked on together: two "
        "without a pause",
        [](const QuantizedExpertProblem& p, const WgmmaW16Config& c) {
            return quantized_linear::has_stages(geometry(p, c), c.stages_together);
        }),
    rule("each tile of rows widens its weights anew: up to 64 rows share a tile, more share tiles of 64, "
         "many of "
         "128",
         [](const QuantizedExpertProblem& p, const WgmmaW16Config& c) {
             const std::int64_t rows = p.rows_an_active();
             return c.tile_n >= (rows <= 64 ? rows : rows <= 128 ? 64 : 128);
         }),
    rule("up to 128 rows are gathered for a tile: their numbers stay in a producer's registers",
         [](const QuantizedExpertProblem& p, const WgmmaW16Config& c) {
             return !p.gather || c.copied_x != 0 || c.tile_n <= 128;
         }),
    rule("copies in front are of gathered rows, and take time that 64 rows an expert make good",
         [](const QuantizedExpertProblem& p, const WgmmaConfig& c) {
             return c.copied_x == 0 || (p.gather && p.rows_an_active() >= 64);
         }),
    rule("half of a tile's rows must exist, or of two tiles'",
         [](const QuantizedExpertProblem& p, const WgmmaW16Config& c) {
             return c.tile_n <= 16 || c.tile_n < 4 * p.rows_an_active();
         }),
    rule("narrow tiles are of sorted rows, and of experts that have many rows",
         [](const QuantizedExpertProblem& p, const WgmmaW16Config& c) {
             return c.narrow_n == 0 || ((!p.gather || c.copied_x != 0) && c.tile_n >= 2 * c.narrow_n &&
                                        p.rows_an_active() >= c.tile_n);
         }),
    rule("weights that several tiles of rows need stay in level 2",
         [](const QuantizedExpertProblem& p, const WgmmaW16Config& c) {
             return c.l2_hint == 0 || p.rows_an_active() <= c.tile_n;
         }),
    rule("a multiprocessor has two blocks at most where a block has two consumers, and one of four",
         [](const WgmmaW16Config& c) { return c.consumers == 1 || c.blocks_per_sm <= 4 / c.consumers; }),
};

/// Rounds of tiles, each bound by the tensor cores, by the widening, by the copies' issue or by the latency
/// of a stage; and the memory.
double predict(const QuantizedExpertProblem& p, const WgmmaW16Config& c, const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    const auto across = static_cast<double>(tiles_across(p, c));
    const double tiles = static_cast<double>(expert_linear::routed_tiles(p, c.tile_n)) * across;
    const double narrow = c.narrow_n != 0 ? p.narrow_tiles(c.tile_n, c.narrow_n) * across : 0.0;
    const double places = static_cast<double>(traits.sm_count * c.blocks_per_sm);
    // Blocks that begin beside the last ones of the call before pile up on the multiprocessors that are free
    // first, where there are more places than tiles: 256 x 16, 128 tiles, 140 us beside 87 on an H200.
    const bool piles_up = c.programmatic != 0 && tiles < places;
    const auto together_of = [&](double count) {
        const double even =
            std::min(static_cast<double>(c.blocks_per_sm), std::ceil(count / traits.sm_count));
        return even + (piles_up ? 0.7 * (static_cast<double>(c.blocks_per_sm) - even) : 0.0);
    };
    const double blocks = static_cast<double>(g.tile_m) / 64;
    // Of a block of 64 rows and columns: it is widened beside products but for some 96 cycles.
    const double unit = 2.0 * g.tile_n + 96;
    // Of a narrow tile, whose steps are the latency of loads as much as products.
    const double narrow_share = std::min(1.0, (2.0 * static_cast<double>(c.narrow_n) + 305) / unit);
    // Two stages together save a pause, all of them both; of 256 columns they leave too few registers,
    // measured on an H200.
    const auto joined = static_cast<double>(c.stages_together);
    const double pause = c.tile_n <= 192 ? (joined == 0 ? 0.0 : 50.0 / std::min(joined, 2.0))
                                         : (joined == 0 ? 60.0 : 200.0 * (joined - 1));
    const double product = blocks * unit + pause;
    const double widen = blocks * (p.bits() == 8 ? 190.0 : 120.0);
    const double alone = g.row_blocks() * unit + (joined == 0 ? 0.0 : 150.0 / joined);
    const double paced = 110 + 115 * blocks;  // a block that has a multiprocessor to itself
    const bool gathers = p.gather && c.copied_x == 0;
    const double copied_us = c.copied_x != 0 ? expert_linear::copies_us(p, traits, c.programmatic != 0) : 0.0;
    // What a multiprocessor draws from level 2: 64 rows of the weight are too few beside 128 of x.
    const double draw = static_cast<double>(g.stage_bytes()) / 67;
    const double steps = std::ceil(static_cast<double>(p.in) / 64);
    // A warpgroup that writes two blocks of rows has them one after the other.
    const double written = static_cast<double>(c.tile_m * c.tile_n) / static_cast<double>(p.products());
    const double writing = 0.11 * written * (g.row_blocks() == 2 && !g.gated ? 1.67 : 1.0);
    // Beside so many other blocks, whose products go on meanwhile.
    const auto tile_cycles = [&](double together) {
        const double step = std::max(
            {together * product, together * widen, together * draw, alone, paced, 1100.0 / g.stages()});
        const double gathered = gathers ? 0.8 * static_cast<double>(c.tile_n) * together : 0.0;
        // Three warpgroups of two blocks of rows each fill one another's pauses: 2 to 6 % less than three
        // times one, in all shapes that an H200 has swept.
        const double crowd = together > 2 && g.row_blocks() == 2 ? 0.95 : 1.0;
        return crowd * steps * (step + gathered) + 1270 + writing * std::pow(together, 0.7);
    };
    const double whole = tiles - (1 - narrow_share) * narrow;
    const double rounds = std::floor(whole / places);
    const double rest = whole - rounds * places;
    const double cycles =
        rounds * tile_cycles(together_of(places)) + (rest < 0.5 ? 0.0 : tile_cycles(together_of(rest)));
    const double compute_us = cycles / busy_cycles_per_us(traits);
    const double memory_us = moved_bytes(p) / (0.65e-6 * traits.memory_bytes_per_s);
    // Three blocks that begin beside the last ones of the call before: 768 -> 2048 takes 5 to 39 % longer for
    // it from 8 rows an expert on, fewer rows nothing.
    const bool crowds = c.programmatic != 0 && c.blocks_per_sm > 2 && p.rows_an_active() >= 8;
    return 4.4 + (crowds ? 1.1 : 1.0) * std::max(compute_us, memory_us) +
           0.07 * std::min(compute_us, memory_us) + around_us(p, traits, c.programmatic != 0) + copied_us;
}

/// The best by the cost model of a few shapes of tiles.
std::optional<WgmmaW16Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const QuantizedExpertProblem p(problem);
    if (p.rows_an_active() <= 4) return std::nullopt;  // memory is faster than these tiles: mma
    struct Shape {
        std::int64_t tile_m, consumers, blocks_per_sm;
    };
    const std::int64_t rows = 64 * p.products();  // of one warpgroup
    const Shape shapes[] = {{rows, 1, 2}, {rows, 1, 1}, {128, 1, 2}, {128, 2, 1}, {256, 2, 1}};
    std::vector<WgmmaW16Config> starts;
    for (const Shape& shape : shapes) {
        WgmmaW16Config& c = starts.emplace_back();
        c.tile_m = shape.tile_m;
        c.consumers = shape.consumers;
        c.blocks_per_sm = shape.blocks_per_sm;
        c.swapped = 1;
        c.programmatic = 1;
    }
    std::vector<WgmmaW16Config> configs = combinations<WgmmaW16Config>(
        starts, tunables,
        {&WgmmaW16Config::tile_n, &WgmmaW16Config::stages_together, &WgmmaW16Config::copied_x});
    // What nobody has checked on a GPU before its first call keeps its pauses: sanitizers have not seen
    // these.
    std::erase_if(configs, [](const WgmmaW16Config& c) { return c.stages_together == 0; });
    // One warpgroup alone on a multiprocessor has nobody to widen beside its products: on an H100 128 x 144
    // took 6 and 9 % longer than 256 x 144 by two.
    std::erase_if(
        configs, [](const WgmmaW16Config& c) { return c.consumers * c.blocks_per_sm == 1 && c.tile_n > 64; });
    for (std::size_t i = 0, count = configs.size(); i < count; ++i) {
        // As expert_linear's variant.
        if (configs[i].copied_x != 0 || (p.combine && p.rows_an_active() > 256)) configs[i].programmatic = 0;
        if (configs[i].tile_n < 128) continue;
        for (const std::int64_t narrow_n : {32, 64}) {
            configs.push_back(configs[i]);
            configs.back().narrow_n = narrow_n;
        }
    }
    return best_of(problem, wgmma_w16, std::span<const WgmmaW16Config>(configs), traits);
}

}  // namespace

const Variant wgmma_w16{
    .name = "wgmma_w16",
    .summary =
        "warpgroup tensor cores, packed codes widened to 16 bits in registers on their way from the ring",
    .source = "quantized_expert_linear/wgmma_w16/kernel.cu",
    .min_arch = {9, 0, true},
    .tunables = tunables,
    .constraints = constraints,
    .kernels = wgmma_w16_kernels,
    .plan = typed<wgmma_w16_plan>,
    .fallback = typed<fallback>,
    .access_elements = typed<wgmma_w16_access_elements>,
    .predict_us = typed<predict>};

}  // namespace hone::quantized_expert_linear
