#include "kernel_templates/linear/mma_tiles/rank.h"

#include <algorithm>
#include <cmath>

#include "kernel_templates/kit/clock.h"
#include "kernel_templates/linear/normalize_rank.h"

namespace hone::linear::tiles {
namespace {

/// Floating-point operations a cycle that mma.sync reaches on a multiprocessor, with float32 sums: from the
/// data sheets' rates and clocks; sm_90 gives it 62 % of what wgmma gets.
double flops_per_cycle(const DeviceTraits& traits) {
    switch (traits.compute_major) {
        case 7: return 1024;
        case 8: return traits.compute_minor == 0 ? 2048 : 1024;
        case 9: return 2540;
        case 10: return 2048;
        default: return 512;
    }
}

/// Cycles of 16 columns of one block: the tensor cores' own, and those of shared memory's port, 128 bytes
/// each, which takes the copies in and gives every warp its rows of both operands.
double step_cycles(const Geometry& g, const DeviceTraits& traits) {
    const double multiply = 32.0 * g.tile_m * g.tile_n / flops_per_cycle(traits);
    const double rows = g.tile_m + g.tile_n + g.warps() * (g.warp_rows() + g.warp_columns());
    return std::max(1.1 * multiply, 32.0 * rows / 128);
}

/// How a call's tiles fill the multiprocessors.
struct Filling {
    double jobs;
    double full_rounds;
    double rest;      ///< blocks of the last round that share a multiprocessor
    double together;  ///< blocks that share one
    double busy;      ///< share of the multiprocessors that have a block
    double cycles_per_us;
    double part_stages;  ///< stages of a part of a sum
};

Filling filling_of(const LinearProblem& p, const MmaTilesConfig& c, const DeviceTraits& traits) {
    const double sms = traits.sm_count;
    const double blocks = static_cast<double>(c.blocks_per_sm);
    Filling f{};
    f.jobs = static_cast<double>(tile_count(p, c) * c.split);
    f.full_rounds = std::floor(f.jobs / (sms * blocks));
    f.rest = std::ceil((f.jobs - f.full_rounds * sms * blocks) / sms);
    f.together = f.full_rounds > 0 ? blocks : f.rest;
    f.busy = std::min(1.0, f.jobs / sms);
    f.cycles_per_us = f.busy > 0.5 ? busy_cycles_per_us(traits) : boost_cycles_per_us(traits);
    f.part_stages = std::ceil(static_cast<double>(ceil_div(p.in, c.tile_k)) / static_cast<double>(c.split));
    return f;
}

/// The products of all tiles, the bytes through memory and level 2, and what the copies in flight can draw.
double body_us(const LinearProblem& p, const MmaTilesConfig& c, const Filling& f,
               const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    // Four warps cannot hide their barriers and reads behind each other's products; eight can, in part.
    const double alone = f.together * g.warps() <= 4 ? 1.25 : g.reads_ahead() ? 1.0 : 1.05;
    const double stage_cycles = static_cast<double>(c.tile_k) / 16 * step_cycles(g, traits) * alone + 20;
    const double blocks = static_cast<double>(c.blocks_per_sm);
    const double compute_us =
        (f.full_rounds * blocks + f.rest) * f.part_stages * stage_cycles / f.cycles_per_us;

    const double sms = traits.sm_count;
    const double bytes_per_us = 0.9e-6 * traits.memory_bytes_per_s;
    const double memory_us = (p.weight_bytes() + p.x_bytes() + p.out_bytes()) / bytes_per_us;
    const double stage_bytes = g.stage_bytes();
    const double level2_us = f.jobs / f.busy * f.part_stages * stage_bytes / (sms * 48 * f.cycles_per_us);
    const double in_flight = sms * f.busy * f.together * (g.stages - 1) * stage_bytes;
    const double draw_us = f.jobs * f.part_stages * stage_bytes / in_flight * 0.8;
    return std::pow(
        std::pow(compute_us, 4) + std::pow(memory_us, 4) + std::pow(level2_us, 4) + std::pow(draw_us, 4),
        0.25);
}

/// Microseconds of the launch that adds the parts of sums; 0 without parts.
double combine_us(const LinearProblem& p, const MmaTilesConfig& c, const DeviceTraits& traits) {
    if (c.split == 1) return 0;
    const double bytes_per_us = 0.9e-6 * traits.memory_bytes_per_s;
    const double partial_bytes =
        4.0 * static_cast<double>(c.split * p.products() * p.tokens) * static_cast<double>(p.out);
    return 2.5 + 2 * partial_bytes / (1.5 * bytes_per_us);
}

}  // namespace

/// Rounds of tiles, each as long as its steps take to multiply, against the time that memory and level 2 need
/// and what the copies in flight can draw; plus what a call costs before and after.
double predict(const LinearProblem& p, const MmaTilesConfig& c, const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    const Filling f = filling_of(p, c, traits);
    const double size = static_cast<double>(g.tile_m * g.result_columns()) / (128.0 * 256.0);
    const double work = 1.0 + (p.activation != Activation::none ? 1.0 : 0.0) + (p.residual ? 1.0 : 0.0);
    const double rest_us = 3.2 + (f.full_rounds + 1) * 2.0 * size * work - (c.programmatic != 0 ? 0.5 : 0.0);
    return body_us(p, c, f, traits) + (rest_us + combine_us(p, c, traits)) + normalize_us(p, traits);
}

}  // namespace hone::linear::tiles
