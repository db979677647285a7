#include "kernel_templates/linear/wgmma_tf32/rank.h"

#include <algorithm>
#include <cmath>

#include "kernel_templates/kit/clock.h"
#include "kernel_templates/linear/normalize_rank.h"

namespace hone::linear::tf32 {

std::int64_t steps(const LinearProblem& p) { return ceil_div(p.in, stage_columns); }

std::int64_t resident_blocks(const WgmmaTf32Config& c, const DeviceTraits& traits) {
    const std::int64_t blocks = traits.sm_count * c.blocks_per_sm;
    switch (c.cluster_k) {
        case 1: return blocks;
        case 2: return blocks * 32 / 33;
        case 4: return blocks * 29 / 32;
        default: return blocks * 27 / 32;
    }
}

namespace {

/// Cycles of one stage of `together` blocks: what the tensor cores and the port of shared memory take for it
/// (product.cuh), or what one warpgroup cannot do while its own products run, which the others' fill.
double stage_cycles(const Geometry& g, double together) {
    const double instructions = 3.0 * slices * g.tile_m / block_rows;
    const double multiply = instructions * std::max(g.tile_n / 2.0, 12.0);
    const double port = instructions * g.tile_n / 4 + 2.0 * g.tile_m + 3.0 * g.tile_n;
    const double alone = (multiply / g.consumers + 200.0 * g.row_blocks());
    return std::max({together * 1.05 * multiply, together * 1.1 * port, alone});
}

/// How a call's tiles fill the multiprocessors.
struct Filling {
    double rounds;
    double together;  ///< blocks that share a multiprocessor
    double busy;      ///< share of the multiprocessors that have a block
};

Filling filling_of(const LinearProblem& p, const WgmmaTf32Config& c, const DeviceTraits& traits) {
    const double jobs = static_cast<double>(tiles(p, geometry(p, c)) * c.cluster_k);
    const double resident = static_cast<double>(resident_blocks(c, traits));
    return {.rounds = std::ceil(jobs / resident),
            .together = std::ceil(std::min(jobs, resident) / traits.sm_count),
            .busy = std::min(1.0, jobs / traits.sm_count)};
}

/// The products of all tiles, the bytes through memory, and what the copies in flight can draw.
double body_us(const LinearProblem& p, const WgmmaTf32Config& c, const Filling& f,
               const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    const double part_steps = std::ceil(static_cast<double>(steps(p)) / static_cast<double>(g.cluster_k));
    const double cycles_per_us = f.busy > 0.5 ? busy_cycles_per_us(traits) : boost_cycles_per_us(traits);
    const double compute_us = f.rounds * part_steps * stage_cycles(g, f.together) / cycles_per_us;
    const double bytes_per_us = 0.9e-6 * traits.memory_bytes_per_s;
    const double hinted = c.l2_hint != 0 && p.tokens <= 128 ? 0.97 : 1.0;
    const double memory_us = (hinted * p.weight_bytes() + p.x_bytes() + p.out_bytes()) / bytes_per_us;
    // What a multiprocessor can draw at once: a stage comes a microsecond after it was asked for.
    const double in_flight = traits.sm_count * f.busy * f.together * g.stages() * g.copied_bytes();
    const double draw_us = p.weight_bytes() * 1.2 / in_flight;
    return std::pow(std::pow(compute_us, 4) + std::pow(memory_us, 4) + std::pow(draw_us, 4), 0.25);
}

}  // namespace

/// Rounds of tiles, each as long as its stages take to multiply, against the time that memory needs for the
/// weights; plus what a call costs before and after. From the floors, not yet fitted to measurements.
double predict(const LinearProblem& p, const WgmmaTf32Config& c, const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    const Filling f = filling_of(p, c, traits);
    const double body = body_us(p, c, f, traits);
    const double size = static_cast<double>(g.result_rows() * g.result_columns()) / (128.0 * 256.0);
    const double epilogue_us = 2.0 * size * (p.activation != Activation::none || p.residual ? 2.0 : 1.0);
    const double exchange_us = g.cluster_k > 1 ? 0.5 * g.cluster_k : 0.0;
    const double early = c.programmatic == 0 ? 0.0 : p.tokens <= 128 ? -0.7 : 0.04 * body;
    return body + 3.2 + f.rounds * epilogue_us + exchange_us + early + normalize_us(p, traits);
}

}  // namespace hone::linear::tf32
