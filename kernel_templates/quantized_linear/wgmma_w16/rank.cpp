#include "kernel_templates/quantized_linear/wgmma_w16/rank.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "kernel_templates/linear/normalize_rank.h"
#include "kernel_templates/linear/wgmma/rank.h"

namespace hone::quantized_linear {

using namespace linear::gemm;

namespace {

/// The largest of what goes on side by side, and somewhat more where several are near it.
double soft_maximum(std::initializer_list<double> parts) {
    double sum = 0;
    for (const double part : parts) sum += part * part * part * part;
    return std::sqrt(std::sqrt(sum));
}

/// Copies that a warp issues for a stage, at most (producers.cuh): of its blocks of rows the codes, scales
/// and zero points, those of stages that are taken together once; scales, where these have the same.
double copies(const QuantizedProblem& p, const Geometry& g) {
    const int blocks = g.tile_m / block_rows;
    const int rest = g.extra_bytes() == 0 ? 0 : p.zeros ? 2 : 1;
    if (p.gated && (blocks > 2 || g.operands.stage_steps == 1 || (rest == 0 && !g.ping_pong)))
        return 1.0 + blocks * (1 + rest);  // one thread's, with that of x
    const auto steps = static_cast<double>(g.operands.stage_steps);
    const double rest_steps = p.group % (g.operands.columns * g.operands.stage_steps) == 0 ? steps : 1;
    if (blocks == 1 && rest > 0) return rest / rest_steps;
    return std::ceil(blocks / 3.0) * (1 / steps + rest / rest_steps);
}

/// Cycles of one stage of `together` blocks of a multiprocessor, which work on `joined` of them without a
/// pause (0: on all): those of the tensor cores; of shared memory's port, 128 bytes each (copies come in;
/// every instruction reads all rows of x, every thread its codes); of the schedulers, which issue the
/// widening; of a warpgroup that waits between its stages; of the warps that issue the copies; and those
/// until a stage that is free again is full, as far as the ring is not deep enough to hide them. Fitted to
/// measurements of 100 problems on an H200 (docs/performance.md), as are the constants of predict: products
/// take longer than at the clock that the others see, since they are what power limits.
double stage_cycles(const QuantizedProblem& p, const Geometry& g, double together, double joined) {
    const double blocks = static_cast<double>(g.tile_m) / block_rows;
    const double product = 2.0 * g.tile_n;
    const double port = (g.stage_bytes() + g.left_bytes() + blocks * 4 * 32.0 * g.tile_n) / 128;
    const bool short_way = p.dtype == Dtype::bf16;  // device/bf16_line.cuh
    const double widen = p.bits() == 8 ? (short_way ? 277 : 308) : (short_way ? 245 : 281);
    const double pause = joined > 0 ? 89 / joined : 0;
    const double alone = g.row_blocks() * (product + 29) * (g.ping_pong && joined > 0 ? 2 : 1) + pause;
    const double issue = copies(p, g) * 36 + 341;
    const double refill =
        (693 + together * g.stage_bytes() / 32.7) / std::max(1.0, g.stages() - (joined > 0 ? joined : 2) - 1);
    return soft_maximum({1.61 * together * blocks * product, 0.78 * together * port,
                         together * blocks * widen, alone, issue, refill});
}

/// What products without a pause leave of such cycles, fitted as they. Two warpgroups with 256 columns each
/// keep the tensor cores busy with pauses, too, and of many tokens the clock says how long they take. Two
/// stages at a time gain 3 % in narrow tiles beside the copies that they share, turns nothing.
double gain_without_pause(const QuantizedProblem& p, const Geometry& g, const w16::Form& form) {
    if (form.pauses()) return 1.0;
    const double pairs = form.pairs && g.tile_n <= 160 ? 0.97 : 1.0;
    const double turns = form.turns ? 1.003 : 1.0;
    if (g.tile_n > 160 && g.sharers() == 1) return 1.005 * pairs * turns;
    if (g.tile_n > 192) return 1.024 * pairs * turns;
    if (p.tokens > 512) return 1.0;
    return (g.row_blocks() == 2 ? 1.008 : 0.964) * pairs * turns;
}

/// Microseconds between the last product of a tile and the first of the block's next one.
double epilogue_us(const QuantizedProblem& p, const Geometry& g) {
    const double size = static_cast<double>(g.result_rows() * g.result_columns()) / (128.0 * 256.0);
    const double work = 1.0 + (p.activation != Activation::none ? 1.0 : 0.0) + (p.residual ? 2.0 : 0.0);
    return (g.ping_pong ? 0.17 : 3.23) * size * work;
}

/// Cycles of a microsecond, at which stage_cycles() counts; `busy`: share of the multiprocessors that work.
double cycles_per_us(double busy, const DeviceTraits& traits) {
    return (busy > 0.5 ? 1.26e-3 : 1e-3) * traits.sm_clock_khz;
}
double memory_us(const QuantizedProblem& p, const DeviceTraits& traits) {
    return (p.weight_bytes() + p.x_bytes() + p.out_bytes()) / (0.92e-6 * traits.memory_bytes_per_s);
}
/// Microseconds of a call before its first products and behind the last results.
double ends_us(const QuantizedProblem& p, const DeviceTraits& traits) {
    return 1.98 + linear::normalize_us(p.dense(), traits);
}

}  // namespace

RoundCost round_cost(const QuantizedProblem& p, const Geometry& g, w16::Form form,
                     const DeviceTraits& traits) {
    const double cycles = stage_cycles(p, g, 1, form.together) * gain_without_pause(p, g, form);
    return {.products_us = static_cast<double>(steps(p.dense())) * cycles / cycles_per_us(1, traits),
            .end_us = epilogue_us(p, g)};
}

double call_us(const QuantizedProblem& p, double products_us, const DeviceTraits& traits) {
    return soft_maximum({products_us, memory_us(p, traits)}) + ends_us(p, traits);
}

/// Rounds of tiles against the time that memory needs for the weights, and the time in which they can be
/// drawn; plus what a call costs before and after. Built as linear's model (linear/wgmma/rank.cpp).
double predict(const QuantizedProblem& p, const WgmmaW16Config& c, const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    const double jobs = static_cast<double>(tiles(p.dense(), g) * c.cluster_k);
    const double resident = static_cast<double>(resident_blocks(c, traits));
    const auto parts = static_cast<double>(parts_of_tail(p.dense(), c, traits));
    const double rounds = parts > 1 ? std::floor(jobs / resident) + 1 / parts : std::ceil(jobs / resident);
    const double at_once = std::min(jobs * parts, resident);
    const double together = std::ceil(at_once / traits.sm_count);
    const double busy = std::min(1.0, at_once / traits.sm_count);
    const double part_steps =
        std::ceil(static_cast<double>(steps(p.dense())) / static_cast<double>(c.cluster_k));

    const double clock = cycles_per_us(busy, traits);
    const w16::Form form = form_of(c.stages_together);
    const double cycles = stage_cycles(p, g, together, form.together) * gain_without_pause(p, g, form);
    const double compute_us = rounds * part_steps * cycles / clock;
    // What a multiprocessor can draw at once: a stage comes a microsecond after it was asked for.
    const double in_flight =
        traits.sm_count * busy * together * g.stages() * (g.left_bytes() + g.extra_bytes());
    const double draw_us = p.weight_bytes() * 1.2 / in_flight;
    const double body_us = soft_maximum({compute_us, memory_us(p, traits), draw_us});

    double rest_us = ends_us(p, traits) + std::ceil(rounds) * epilogue_us(p, g);
    if (c.cluster_k > 1)
        rest_us += (g.has_inbox() ? 0.4 + 0.1 * static_cast<double>(c.cluster_k)
                                  : 0.83 * static_cast<double>(c.cluster_k)) +
                   g.partial_bytes() / 33.5 / clock;
    if (g.tail_pairs)
        rest_us += 1.0 + g.partial_bytes() / 2 / 25.0e3;
    else if (parts > 1)
        rest_us += 3.32 + parts * g.partial_bytes() / 17.3 / clock;
    // Early weights help as long as they are most of what is read; hints, where no weight is read twice.
    const double early = c.programmatic != 1 ? 0.0 : p.tokens <= 64 ? -0.29 : -0.26;
    const double hint = c.l2_hint != 0 && jobs <= resident ? -0.01 * body_us : 0.0;
    const double groups = c.raster > 8 ? 0.005 * body_us : 0.0;
    const double turns = c.staged == 3 && p.tokens <= 2048 ? -0.01 * body_us : 0.0;  // a stage more
    return body_us + rest_us + early + hint + groups + turns +
           (c.staged != 0 && c.cluster_k == 1 && p.tokens <= 64 ? 0.05 : 0.0);
}

}  // namespace hone::quantized_linear
