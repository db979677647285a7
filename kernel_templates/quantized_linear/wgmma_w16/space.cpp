#include <algorithm>
#include <vector>

#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/linear/wgmma/rules.h"
#include "kernel_templates/quantized_linear/rank.h"
#include "kernel_templates/quantized_linear/variants.h"
#include "kernel_templates/quantized_linear/wgmma_w16/rank.h"
#include "kernel_templates/quantized_linear/wgmma_w16/stages.h"

namespace hone::quantized_linear {
namespace {
using namespace linear::gemm;

constexpr auto tile_tunables = tunables_of({
    tunable<&WgmmaConfig::tile_m>("rows of a tile: of the weight", {64, 128, 192, 256}),
    tunable<&WgmmaConfig::tile_n>("columns of a tile: tokens",
                                  {8,   16,  32,  48,  64,  80,  96,  104, 112, 120, 128, 136,
                                   144, 152, 160, 168, 176, 184, 192, 200, 208, 224, 240, 256}),
    tunable<&WgmmaConfig::consumers>("warpgroups that multiply", {1, 2, 3, 4}),
    tunable<&WgmmaConfig::ping_pong>("1: they take tiles in turn instead of sharing one", {0, 1}),
    tunable<&WgmmaConfig::blocks_per_sm>("resident blocks a multiprocessor", {1, 2, 3}),
    tunable<&WgmmaConfig::swapped>("the weight is the left operand", {1}),
    tunable<&WgmmaConfig::tail_split>(
        "1: tiles of a last round that few blocks take are split over all of them; 2: between the two blocks "
        "of a cluster",
        {0, 1, 2}),
    tunable<&WgmmaConfig::cluster_k>("parts of a sum, added up within a cluster of blocks",
                                     {1, 2, 3, 4, 6, 8}),
    tunable<&WgmmaConfig::staged>("1: results leave through shared memory and the copy engine; 3: small "
                                  "panels in turns; with cluster_k 2: the others' sums come into memory of "
                                  "their own",
                                  {0, 1, 2, 3}),
    tunable<&WgmmaConfig::raster>("rows of tiles that are worked on together", {8, 16}),
    tunable<&WgmmaConfig::l2_hint>("1: weights leave level 2 first, x last", {0, 1}),
    programmatic_launches<&WgmmaConfig::programmatic>(),
});
constexpr auto tunables = tunables_of(
    tile_tunables,
    {tunable<&WgmmaW16Config::stages_together>(
        "stages between whose products the tensor cores do not wait; 0: all; 6: all, taken two at "
        "a time; 7: and by warpgroups in turns",
        {0, 1, 2, 4, 6, 7})});

constexpr auto own_constraints = std::to_array<Constraint>({
    rule("codes of 4 or 8 bits that stand in blocks are multiplied with 16-bit x",
         [](const QuantizedProblem& p) { return p.is_packed(); }),
    rule("codes are copied 16 bytes at a time, and rows of x and of results start there: in and out are "
         "multiples of 16",
         [](const QuantizedProblem& p) { return p.in % 16 == 0 && p.out % 16 == 0; }),
    rule("warpgroups take one or two blocks of 64 rows, of gate and up one each; ping-pong is between two "
         "warpgroups",
         through<WgmmaW16Config>(&WgmmaW16Config::swapped),
         [](const QuantizedProblem& p, const WgmmaW16Config& c) {
             const Geometry g = geometry(p, c);
             return (!g.ping_pong || g.consumers == 2) && g.tile_m % (64 * g.sharers()) == 0 &&
                    g.row_blocks() <= 2 && (!g.gated || g.row_blocks() == 2);
         }),
    rule("a thread's sums, fragments and codes must fit its registers",
         [](const QuantizedProblem& p, const WgmmaW16Config& c) {
             return fits_registers(p, geometry(p, c), c);
         }),
    rule(
        "at least three stages must fit shared memory, and two beside those that are worked on together: two "
        "without a pause",
        [](const QuantizedProblem& p, const WgmmaW16Config& c) {
            return has_stages(geometry(p, c), c.stages_together);
        }),
    rule("two stages at a time are parts of sums that have an even number of steps, as have the parts of a "
         "cluster",
         [](const QuantizedProblem& p, const WgmmaW16Config& c) {
             return !form_of(c.stages_together).pairs || steps(p.dense()) % (2 * c.cluster_k) == 0;
         }),
    rule("turns are between warpgroups that share a tile",
         [](const WgmmaW16Config& c) {
             return !form_of(c.stages_together).turns || (c.consumers > 1 && c.ping_pong == 0);
         }),
    rule("each tile of tokens widens its weights anew: up to 64 tokens share a tile, up to 256 tiles of 64, "
         "more of 96",
         through<WgmmaW16Config>(&WgmmaW16Config::tile_n),
         [](const QuantizedProblem& p, const WgmmaW16Config& c) {
             const std::int64_t count = p.tokens;
             return c.tile_n >= (count <= 64 ? count : count <= 256 ? 64 : 96);
         }),
    rule("ping-pong hides the end of a tile behind the next one: with tiles of 64 tokens at least, worked on "
         "in more than one round",
         through<WgmmaW16Config>(&WgmmaW16Config::programmatic),
         [](const QuantizedProblem& p, const WgmmaW16Config& c, const DeviceTraits& t) {
             return c.ping_pong == 0 ||
                    (c.tile_n >= 64 && tiles(p.dense(), geometry(p, c)) > resident_blocks(c, t));
         }),
    rule("the parts of sums that meet in a cluster must fit the rings",
         [](const QuantizedProblem& p, const WgmmaW16Config& c) {
             const Geometry g = geometry(p, c);
             return c.cluster_k == 1 || g.has_inbox() || g.exchange_bytes() <= g.stages() * g.stage_bytes();
         }),
});
constexpr auto constraints = joined(own_constraints, schedule_rules<Dense, WgmmaW16Config>);

/// The best by the cost model of a few shapes of tiles.
std::optional<WgmmaW16Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const QuantizedProblem p(problem);
    if (p.tokens <= 8) return std::nullopt;  // memory is faster than these tiles: the others
    struct Shape {
        std::int64_t tile_m, consumers, blocks_per_sm;
    };
    const std::int64_t rows = 64 * p.products();  // of one warpgroup
    const Shape shapes[] = {{rows, 1, 2}, {rows, 1, 1}, {128, 2, 1}, {192, 3, 1}, {256, 2, 1}};
    std::vector<WgmmaW16Config> starts;
    for (const Shape& shape : shapes) {
        WgmmaW16Config& c = starts.emplace_back();
        c.tile_m = shape.tile_m;
        c.consumers = shape.consumers;
        c.blocks_per_sm = shape.blocks_per_sm;
        c.swapped = 1;
        c.l2_hint = p.tokens <= 64 ? 1 : 0;
        c.programmatic = p.tokens <= 128 ? 1 : 2;
    }
    std::vector<WgmmaW16Config> configs =
        combinations<WgmmaW16Config>(starts, tunables,
                                     {&WgmmaW16Config::tile_n, &WgmmaW16Config::cluster_k,
                                      &WgmmaW16Config::tail_split, &WgmmaW16Config::stages_together});
    std::erase_if(configs,
                  [](const WgmmaW16Config& c) { return c.tail_split == 2; });  // where they are tuned
    const std::size_t count = configs.size();
    for (std::size_t i = 0; i < count; ++i) {
        configs[i].staged = configs[i].cluster_k == 1 ? 1 : 2;
        if (configs[i].cluster_k > 1 || configs[i].tail_split != 0) continue;
        WgmmaW16Config in_turns = configs[i];
        in_turns.staged = 3;
        configs.push_back(in_turns);
    }
    return best_of(problem, wgmma_w16, std::span<const WgmmaW16Config>(configs), traits);
}

}  // namespace

const Variant wgmma_w16{
    .name = "wgmma_w16",
    .summary = "warpgroup tensor cores, weights widened to 16 bits in registers on their way from the ring",
    .source = "quantized_linear/wgmma_w16/kernel.cu",
    .min_arch = {9, 0, true},
    .tunables = tunables,
    .constraints = constraints,
    .kernels = wgmma_w16_kernels,
    .plan = typed<wgmma_w16_plan>,
    .fallback = typed<fallback>,
    .access_elements = typed<wgmma_w16_access_elements>,
    .predict_us = typed<predict>};

}  // namespace hone::quantized_linear
