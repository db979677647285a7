#include "kernel_templates/linear/wgmma/rank.h"

#include <algorithm>
#include <cmath>

#include "kernel_templates/kit/clock.h"
#include "kernel_templates/linear/normalize_rank.h"
#include "kernel_templates/linear/wgmma/rules.h"

namespace hone::linear::gemm {

std::int64_t resident_blocks(const WgmmaConfig& c, const DeviceTraits& traits) {
    const std::int64_t blocks = places(c, traits);
    switch (c.cluster_k) {
        case 1: return blocks;
        case 2: return blocks * 32 / 33;
        case 3: return blocks * 39 / 44;
        case 4: return blocks * 29 / 32;
        case 6: return blocks * 17 / 22;
        default: return blocks * 27 / 32;
    }
}

bool stores_by_engine(const LinearProblem& p) { return p.out % 8 == 0; }

std::vector<WgmmaConfig> proven_configs(const LinearProblem& p) {
    const std::int64_t rows = p.gated ? 128 : 64;  // for 64 rows of results, where the weight is left
    WgmmaConfig shared{
        .raster = 8, .l2_hint = p.tokens <= 64 ? 1 : 0, .programmatic = p.tokens <= 128 ? 1 : 2};
    const std::int64_t whole = stores_by_engine(p) ? 1 : 0;
    std::vector<WgmmaConfig> configs;
    const auto add = [&](std::int64_t tile_m, std::int64_t tile_n, WgmmaConfig c) {
        c.tile_m = tile_m;
        c.tile_n = tile_n;
        for (const std::int64_t parts : tunables[index_of(&WgmmaConfig::cluster_k)].values.span()) {
            c.cluster_k = parts;
            c.staged = parts == 1 ? whole : 2;
            configs.push_back(c);
        }
        if (p.tokens <= 128) return;
        c.cluster_k = 1;
        c.staged = whole;
        c.tail_split = 1;
        configs.push_back(c);
    };
    WgmmaConfig weight_left = shared;
    weight_left.swapped = 1;
    weight_left.blocks_per_sm = 2;
    for (const std::int64_t columns : {8, 16, 32, 64}) add(rows, columns, weight_left);
    weight_left.blocks_per_sm = 1;
    add(rows, 128, weight_left);
    if (p.tokens > 128 && p.tokens <= 512) {  // widths that leave little of the last tile of tokens empty
        WgmmaConfig wide = weight_left;
        wide.consumers = 2;
        for (const std::int64_t columns : {96,  104, 112, 120, 128, 136, 144, 152, 160, 168, 176,
                                           184, 192, 200, 208, 216, 224, 232, 240, 248, 256}) {
            add(rows, columns, weight_left);
            add(2 * rows, columns, wide);
        }
    }
    shared.consumers = 2;
    WgmmaConfig in_turn = shared;
    in_turn.ping_pong = 1;
    add(64, 128, in_turn);
    add(128, 128, shared);
    add(128, 256, shared);
    return configs;
}

namespace {

/// Microseconds between the last product of a tile and the first of the block's next one.
double epilogue_us(const LinearProblem& p, const Geometry& g) {
    const double size = static_cast<double>(g.result_rows() * g.result_columns()) / (128.0 * 256.0);
    const double work = 1.0 + (p.activation != Activation::none ? 1.0 : 0.0) + (p.residual ? 2.0 : 0.0);
    return (g.ping_pong ? 0.3 : 1.5) * size * work;
}

/// Microseconds in which a part of a tile's sums goes to memory and the others come back, 64 bytes a cycle;
/// and those of the flags between.
double fix_up_us(const Geometry& g, double parts, double cycles_per_us) {
    return 3.0 + parts * g.partial_bytes() / 24.0 / cycles_per_us;
}

/// The same between the two blocks of a cluster, which send each other half of a tile's sums.
double pair_us(const Geometry& g) { return 1.0 + g.partial_bytes() / 2 / 25.0e3; }

/// Microseconds from asking for a stage until it is there, while memory is busy: a block draws no more than
/// its ring in this time, however idle the other multiprocessors are.
constexpr double stage_latency_us = 1.2;
/// Share of the memory's bandwidth that a call of nothing but copies reaches.
constexpr double memory_share = 0.93;
/// Microseconds of a call that does nothing.
constexpr double call_us = 2.7;
/// Microseconds in which one more block of a cluster is waited for.
constexpr double cluster_block_us = 0.3;

/// The same where its sums come into memory of their own.
constexpr double inbox_block_us = 0.1;

/// How a call's tiles fill the multiprocessors.
struct Filling {
    double jobs;
    double resident;
    double parts;        ///< parts of a tile of the last round
    double full_rounds;  ///< in which every place has a job
    double tail_blocks;  ///< that have a job, or a part of one, in the round after them; 0: there is none
    double cycles_per_us;

    [[nodiscard]] double rounds() const { return full_rounds + (tail_blocks > 0 ? 1 : 0); }
};

Filling filling_of(const LinearProblem& p, const WgmmaConfig& c, const DeviceTraits& traits) {
    Filling f{};
    f.jobs = static_cast<double>(tiles(p, geometry(p, c)) * c.cluster_k);
    f.resident = static_cast<double>(resident_blocks(c, traits));
    f.parts = static_cast<double>(parts_of_tail(p, c, traits));
    f.full_rounds = std::floor(f.jobs / f.resident);
    f.tail_blocks = (f.jobs - f.full_rounds * f.resident) * f.parts;
    const double at_once = std::min(f.jobs * f.parts, f.resident);
    f.cycles_per_us =
        2 * at_once > traits.sm_count ? busy_cycles_per_us(traits) : boost_cycles_per_us(traits);
    return f;
}

/// A round of `blocks` with a job each, or with one of `parts` of a job: what memory needs for their share of
/// the call's bytes beside what a multiprocessor needs to draw its own, and the products. A last round of few
/// blocks so takes nearly as long as a full one, though it moves little.
double round_us(double blocks, double parts, double memory_us, double part_steps, const Geometry& g,
                const Filling& f, const DeviceTraits& traits) {
    const double together = std::ceil(std::min(blocks, f.resident) / traits.sm_count);
    const double stages = together * part_steps / parts;
    const double share_us = memory_us * blocks / parts / f.jobs;
    const double draw_us = part_steps / parts / g.stages() * stage_latency_us;
    const double fetch_us = std::sqrt(share_us * share_us + draw_us * draw_us);
    const double compute_us = stages * stage_cycles(g) / f.cycles_per_us;
    return std::pow(std::pow(compute_us, 4) + std::pow(fetch_us, 4), 0.25);
}

/// The products and copies of all tiles, round by round.
double body_us(const LinearProblem& p, const WgmmaConfig& c, const Filling& f, const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    const double part_steps = std::ceil(static_cast<double>(steps(p)) / static_cast<double>(c.cluster_k));
    // Weights that leave first make room for x, but in later rounds other tiles want them once more.
    const double hinted = c.l2_hint == 0 ? 1.0 : f.jobs <= f.resident ? 0.985 : 1.04;
    const double bytes_per_us = memory_share * 1e-6 * traits.memory_bytes_per_s;
    const double memory_us = (hinted * p.weight_bytes() + p.x_bytes() + p.out_bytes()) / bytes_per_us;
    double us = 0;
    if (f.full_rounds > 0) us += f.full_rounds * round_us(f.resident, 1, memory_us, part_steps, g, f, traits);
    if (f.tail_blocks > 0) us += round_us(f.tail_blocks, f.parts, memory_us, part_steps, g, f, traits);
    return us;
}

/// What a call costs before and after its body.
double rest_us(const LinearProblem& p, const WgmmaConfig& c, const Filling& f, double body,
               const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    double rest = call_us + f.rounds() * epilogue_us(p, g) + normalize_us(p, traits);
    if (c.cluster_k > 1) {
        const double bytes_per_cycle = g.joins_early() ? 20.0 : 10.0;
        rest += (g.has_inbox() ? inbox_block_us : cluster_block_us) * static_cast<double>(c.cluster_k) +
                g.partial_bytes() / bytes_per_cycle / f.cycles_per_us;
    }
    if (f.parts > 1) rest += g.tail_pairs ? pair_us(g) : fix_up_us(g, f.parts, f.cycles_per_us);
    // Two small blocks share a multiprocessor even where others have none.
    if (c.blocks_per_sm > 1 && f.jobs <= traits.sm_count && p.tokens > 64) rest += 0.5 * body;
    // With many tokens the transposed way out, and x as the operand that all tiles want, are in the way.
    if (g.swapped && p.tokens > 128) rest += 0.04 * body;
    // Ping-pong hides one tile's end behind another's products: not where a block has one tile.
    if (g.ping_pong && f.jobs * f.parts <= f.resident) rest += 1.0;
    return rest;
}

}  // namespace

double stage_cycles(const Geometry& g) {
    const double instructions = 4.0 * g.tile_m / block_rows;
    const double multiply = instructions * g.tile_n / 2;
    const double read_twice = g.halves() ? 4.0 : 0.0;  // rows of the block that two warpgroups share
    const double port =
        (g.stage_bytes() + instructions * (2048.0 + 32.0 * g.tile_n) + read_twice * 2048.0) / 128;
    return std::max(1.1 * multiply, 0.95 * port);  // power keeps the clock of busy tensor cores down
}

/// Rounds of tiles, each as long as its stages take to multiply, against the time that memory needs for the
/// weights; plus what a call costs before and after. Fitted to measurements of 33 problems on an
/// H100 (docs/performance.md).
double predict_fetched(const LinearProblem& p, const WgmmaConfig& c, const DeviceTraits& traits,
                       double fetched) {
    const Filling f = filling_of(p, c, traits);
    const double body = fetched * body_us(p, c, f, traits);
    // Early weights help as long as they are most of what is read; a late release, where there is much to do.
    double early = 0;
    if (c.programmatic == 1) early = p.tokens <= 128 ? -1.2 : -0.2;
    if (c.programmatic >= 2) early = p.tokens <= 512 ? 0.0 : -0.01 * body;
    if (c.programmatic == 3) early -= 0.3;  // x has fewer weights ahead of it
    return body + rest_us(p, c, f, body, traits) + early +
           (c.staged != 0 && c.cluster_k == 1 && p.tokens <= 64 ? 0.2 : 0.0);
}

double predict(const LinearProblem& p, const WgmmaConfig& c, const DeviceTraits& traits) {
    return predict_fetched(p, c, traits, 1.0);
}

double rewrite_us(double read_bytes, double written_bytes, const DeviceTraits& traits) {
    const double kept = std::min(written_bytes, 0.5 * static_cast<double>(traits.l2_bytes));
    return 2.0 + (read_bytes + written_bytes - 0.5 * kept) / (0.85e-6 * traits.memory_bytes_per_s);
}

}  // namespace hone::linear::gemm
