#include "kernel_templates/attention_decode/attention_decode.h"

#include <cmath>

namespace hone::attention_decode {

DecodeProblem decode_problem(const Problem& problem) {
    constexpr Dtype dtypes[] = {Dtype::fp32, Dtype::fp16, Dtype::bf16};
    return {.dtype = dtypes[problem[0]],
            .fp8_cache = problem[1] != 0,
            .causal = problem[2] != 0,
            .window = problem[3],
            .softcap = problem[4] != 0,
            .lse = problem[5] != 0,
            .lengths = problem[6] != 0,
            .page_size = problem[7],
            .heads = problem[8],
            .kv_heads = problem[9],
            .head_dim = problem[10],
            .q_tokens = problem[11],
            .batch = problem[12],
            .kv_len = problem[13],
            .q_len = problem[14]};
}

namespace {

/// Units of a sequence; a window may touch one more than its tokens fill.
std::int64_t units(const DecodeProblem& p, std::int64_t unit) {
    return ceil_div(p.tokens_seen(), unit) + (p.tokens_seen() < p.kv_len ? 1 : 0);
}

}  // namespace

std::int64_t blocks(const DecodeProblem& p, const Cut& cut, const DeviceTraits& traits) {
    const Geometry& g = cut.geometry;
    if (g.cluster > 1) return p.batch * g.lists() * g.cluster;
    const std::int64_t line_units = p.batch * units(p, cut.unit) * g.line_lists();
    const std::int64_t slots =
        std::min(traits.sm_count * cut.blocks_per_sm / g.lines(), ceil_div(line_units, g.warps));
    return std::max<std::int64_t>(slots, 1) * g.lines();
}

Launch launch(const char* kernel, Dim3 grid, std::int64_t threads) {
    Launch result;
    result.kernel = kernel;
    result.grid = grid;
    result.block = {static_cast<std::uint32_t>(threads), 1, 1};
    for (int i = 0; i < pointer_count; ++i) result.args[result.arg_count++] = pointer_arg(i);
    for (int i = 0; i < scalar_count; ++i) result.args[result.arg_count++] = scalar_arg(i);
    return result;
}

Plan plan(const char* kernel, const DecodeProblem& p, const Cut& cut, const DeviceTraits& traits) {
    const Geometry& g = cut.geometry;
    const std::int64_t count = blocks(p, cut, traits);
    const auto grid = static_cast<std::uint32_t>(count);
    Plan plan{.launch_count = 1};
    plan.launches[0] = launch(kernel, {grid, 1, 1}, 32 * g.warps);
    plan.launches[0].cluster.x = static_cast<std::uint32_t>(g.cluster);
    plan.launches[0].shared_bytes = static_cast<std::uint32_t>(g.join_bytes());
    plan.launches[0].programmatic = traits.has_programmatic_launch();
    if (g.cluster > 1) return plan;
    plan.workspace_bytes = count * g.piece_bytes();
    if (cut.last_block) return plan;
    plan.launch_count = 2;
    plan.launches[1] =
        launch("attention_decode_combine", {grid, static_cast<std::uint32_t>(g.block_rows()), 1}, 128);
    plan.launches[1].programmatic = plan.launches[0].programmatic;
    return plan;
}

std::optional<Config> best_of(const Problem& problem, const Variant& variant, std::span<const Config> configs,
                              const DeviceTraits& traits) {
    std::optional<Config> best;
    double best_us = 0;
    for (const Config& config : configs) {
        if (!allowed(problem, {&variant, config}, traits)) continue;
        const double us = variant.predict_us(problem, config, traits);
        if (best && us >= best_us) continue;
        best = config;
        best_us = us;
    }
    return best;
}

bool rows_exist(const DecodeProblem& p, std::int64_t rows, std::int64_t fewer) {
    return rows == fewer || p.rows() > rows / 2;
}

bool lists_fit_side_by_side(const DecodeProblem& p, const Cut& cut, const DeviceTraits& traits) {
    return !cut.geometry.side_by_side ||
           (p.kv_heads > 1 && cut.geometry.lists() <= traits.sm_count * cut.blocks_per_sm);
}

std::int64_t wide_access(const DecodeProblem& p) { return p.fp8_cache ? 16 : 8; }

bool has_wide_rows(const DecodeProblem& p) {
    return p.dtype != Dtype::fp32 && p.head_dim % wide_access(p) == 0;
}

namespace {

/// Of `blocks` that run side by side, each with so many bytes of the cache, and warps' shares of 16 tokens.
double round_us(double blocks, double block_bytes, double block_shares, const Cut& cut, const Stream& stream,
                const DeviceTraits& traits) {
    const double bytes = blocks * block_bytes;
    const double sms = std::min<double>(blocks, traits.sm_count);
    const double memory_us = bytes / (0.935e-6 * traits.memory_bytes_per_s) * stream.slowdown;
    constexpr double latency_us = 1.6;
    const double draw_us = block_bytes * latency_us / stream.in_flight_bytes;
    // What one multiprocessor takes in, whatever is in flight; and the instructions that its warps issue.
    const double port_us = bytes / (sms * 52e3);
    const double warps = cut.geometry.warps * blocks / sms;
    const double issued = sms * std::min(2.0, 0.25 * warps) * 0.886e-3 * traits.sm_clock_khz;
    const double issue_us = blocks * block_shares * stream.instructions / issued;
    return std::pow(
        std::pow(memory_us, 4) + std::pow(draw_us, 4) + std::pow(port_us, 4) + std::pow(issue_us, 4), 0.25);
}

}  // namespace

double predict_us(const DecodeProblem& p, const Cut& cut, const Stream& stream, const DeviceTraits& traits) {
    const Geometry& g = cut.geometry;
    const double count = static_cast<double>(blocks(p, cut, traits));
    // Clusters stand within a group of multiprocessors: large ones leave some of those empty.
    const double usable =
        (g.cluster > 2 ? 0.9 : 1.0) * traits.sm_count * static_cast<double>(cut.blocks_per_sm);
    const double resident = std::max(1.0, std::floor(usable / g.cluster)) * g.cluster;
    // Groups of rows read the same tokens again, mostly from level 2.
    const double block_bytes = p.cache_bytes() * (1.0 + 0.35 * (g.row_groups() - 1)) / count;
    const double block_shares =
        static_cast<double>(p.batch * ceil_div(p.tokens_seen(), 16)) * g.lists() / count;
    const double rounds = std::floor(count / resident);
    const double rest = count - rounds * resident;
    double body_us = rounds * round_us(resident, block_bytes, block_shares, cut, stream, traits);
    if (rest > 0) body_us += round_us(rest, block_bytes, block_shares, cut, stream, traits);
    const double meet_us = g.cluster > 1 ? 0.3 + 0.06 * g.cluster : cut.last_block ? 2.5 : 3.7;
    return body_us + stream.rest_us + meet_us;
}

}  // namespace hone::attention_decode
