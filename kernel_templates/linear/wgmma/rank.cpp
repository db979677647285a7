#include <algorithm>
#include <cmath>

#include "kernel_templates/linear/normalize.h"
#include "kernel_templates/linear/wgmma/product.h"

namespace hone::linear::gemm {
namespace {

/// Cycles of one stage: the tensor cores' own, and those of shared memory's port, 128 bytes each, which takes
/// the copies in and gives every instruction its 64 rows of the left operand and all rows of the right one.
double stage_cycles(const Geometry& g) {
    const double instructions = 4.0 * g.tile_m / block_rows;
    const double multiply = instructions * g.tile_n / 2;
    const double port = (g.stage_bytes() + instructions * (2048.0 + 32.0 * g.tile_n)) / 128;
    return std::max(1.1 * multiply, 0.95 * port);  // power keeps the clock of busy tensor cores down
}

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

}  // namespace

/// Rounds of tiles, each as long as its stages take to multiply, against the time that memory needs for the
/// weights; plus what a call costs before and after. Fitted to measurements of 33 problems on an
/// H100 (docs/performance.md).
double predict(const LinearProblem& p, const Config& config, const DeviceTraits& traits) {
    const Geometry g = geometry(p, config);
    const double jobs = static_cast<double>(tiles(p, g) * config[cluster_k]);
    const double resident = static_cast<double>(resident_blocks(config, traits));
    const auto parts = static_cast<double>(parts_of_tail(p, config, traits));
    const double rounds = parts > 1 ? std::floor(jobs / resident) + 1 / parts : std::ceil(jobs / resident);
    const double at_once = std::min(jobs * parts, resident);
    const double together = std::ceil(at_once / traits.sm_count);
    const double busy = std::min(1.0, at_once / traits.sm_count);
    const double part_steps =
        std::ceil(static_cast<double>(steps(p)) / static_cast<double>(config[cluster_k]));

    const double cycles_per_us = (busy > 0.5 ? 0.886e-3 : 1e-3) * traits.sm_clock_khz;
    const double compute_us = rounds * together * part_steps * stage_cycles(g) / cycles_per_us;
    // Weights that leave first make room for x, but in later rounds other tiles want them once more.
    const double hinted = config[l2_hint] == 0 ? 1.0 : jobs <= resident ? 0.985 : 1.04;
    const double bytes_per_us = 0.9e-6 * traits.memory_bytes_per_s;
    const double memory_us = (hinted * p.weight_bytes() + p.x_bytes() + p.out_bytes()) / bytes_per_us;
    // What a multiprocessor can draw at once: a stage comes a microsecond after it was asked for.
    const double in_flight = traits.sm_count * busy * together * g.stages() * g.stage_bytes();
    const double draw_us = p.weight_bytes() * 1.2 / in_flight;
    const double body_us =
        std::pow(std::pow(compute_us, 4) + std::pow(memory_us, 4) + std::pow(draw_us, 4), 0.25);

    double rest_us = 3.2 + std::ceil(rounds) * epilogue_us(p, g) + normalize_us(p, traits);
    if (config[cluster_k] > 1)
        rest_us += 0.5 * static_cast<double>(config[cluster_k]) + g.partial_bytes() / 10.0 / cycles_per_us;
    if (parts > 1) rest_us += fix_up_us(g, parts, cycles_per_us);
    // Two small blocks share a multiprocessor even where others have none.
    if (config[blocks_per_sm] > 1 && jobs <= traits.sm_count && p.tokens > 64) rest_us += 0.5 * body_us;
    // With many tokens the transposed way out, and x as the operand that all tiles want, are in the way.
    if (g.swapped && p.tokens > 128) rest_us += 0.04 * body_us;
    // Ping-pong hides one tile's end behind another's products: not where a block has one tile.
    if (g.ping_pong && jobs * parts <= resident) rest_us += 1.0;
    // Early weights help as long as they are most of what is read; a late release, where there is much to do.
    double early = 0;
    if (config[programmatic] == 1) early = p.tokens <= 128 ? -1.2 : -0.2;
    if (config[programmatic] == 2) early = p.tokens <= 512 ? 0.0 : -0.01 * body_us;
    return body_us + rest_us + early + (config[staged] != 0 && p.tokens <= 64 ? 0.2 : 0.0);
}

}  // namespace hone::linear::gemm
