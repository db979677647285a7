#include <algorithm>
#include <cmath>
#include <vector>

#include "kernel_templates/kit/clock.h"
#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/linear/few_tokens_rules.h"
#include "kernel_templates/linear/normalize_rank.h"
#include "kernel_templates/linear/ring/tunables.h"
#include "kernel_templates/linear/variants.h"

namespace hone::linear {
namespace {

constexpr const auto& tunables = ring_tunables;

constexpr std::int64_t most_tokens = 64;
/// The least value of `tokens` that holds all.
std::int64_t tokens_held(const LinearProblem& p) {
    return *std::ranges::lower_bound(tunables[0].values.span(), std::min(p.tokens, most_tokens));
}

/// Shared memory that a block may have: beside it there is room for blocks of small kernels that follow, a
/// norm's, say, which are then there before it ends.
std::int64_t most_shared_bytes(const DeviceTraits& traits) {
    return traits.max_shared_bytes_per_block - 12 * 1024;
}

/// Registers of a thread: sums, and the rest.
std::int64_t registers(const LinearProblem& p, const RingConfig& c) {
    const RingGeometry g = geometry(p, c);
    return g.row_blocks() * g.n() / 2 + 48;
}

constexpr Constraint constraints[] = {
    few_tokens::elements_of_tensor_cores,
    few_tokens::rows_are_aligned,
    rule("up to 64 tokens", [](const LinearProblem& p) { return p.tokens <= most_tokens; }),
    rule("a block holds all tokens, and no more than it must",
         [](const LinearProblem& p, const RingConfig& c) { return c.tokens == tokens_held(p); }),
    rule("a stage is the same warpgroup's in every round: as many stages for each of them",
         [](const RingConfig& c) { return c.stages % c.consumers == 0; }),
    rule("tiles leave no more than half of the multiprocessors idle, where fewer rows would not do",
         [](const LinearProblem& p, const RingConfig& c, const DeviceTraits& t) {
             return c.rows == 8 || 2 * blocks(p, c, t) >= t.sm_count;
         }),
    rule("blocks are spread where that makes more of them",
         [](const LinearProblem& p, const RingConfig& c, const DeviceTraits& t) {
             RingConfig other = c;
             other.spread = 0;
             return c.spread == 0 || blocks(p, c, t) > blocks(p, other, t);
         }),
    rule("weights of a plain launch wait with x: half of the ring, then all of it",
         [](const RingConfig& c) { return c.early == 1 || c.programmatic != 0; }),
    rule("where x is normalized on its way, others bring it: weights that are asked for wait for nothing, "
         "all of "
         "them",
         [](const LinearProblem& p, const RingConfig& c) {
             return c.early == 2 || c.programmatic == 0 || !folds_norm(p, c);
         }),
    rule("a tile has no more than four blocks of rows",
         [](const LinearProblem& p, const RingConfig& c) { return p.products() * c.rows <= 256; }),
    rule("clusters share tiles of 5 tokens and more, and of a step for each stage",
         [](const LinearProblem& p, const RingConfig& c) {
             return c.cluster_k == 1 || (p.tokens > 4 && geometry(p, c).steps() >= c.cluster_k * c.stages);
         }),
    // A warp without rows sends no sums, and nothing in a cluster waits for it: behind a third tile it could
    // be two phases late for an inbox, which look like none, and wait for ever.
    rule("clusters take two tiles at most where not every warp has rows",
         [](const LinearProblem& p, const RingConfig& c, const DeviceTraits& t) {
             return c.cluster_k == 1 || geometry(p, c).every_warp_has_rows() || rounds(p, c, t) <= 2;
         }),
    rule("a stage has 8 to 48 KB",
         [](const LinearProblem& p, const RingConfig& c) {
             const int bytes = geometry(p, c).stage_bytes();
             return bytes >= 8 * 1024 && bytes <= 48 * 1024;
         }),
    rule("every warpgroup has columns",
         [](const LinearProblem& p, const RingConfig& c) {
             return geometry(p, c).steps() >= c.cluster_k * c.consumers;
         }),
    programmatic_needs_sm_90<RingConfig>,
    rule("sums must fit a thread's registers",
         [](const LinearProblem& p, const RingConfig& c) {
             const std::int64_t share = 65536 / geometry(p, c).threads() / 8 * 8;
             return registers(p, c) <= std::min<std::int64_t>(share, 224);
         }),
    rule("the ring and sums must fit shared memory",
         [](const LinearProblem& p, const RingConfig& c, const DeviceTraits& t) {
             return geometry(p, c).shared_bytes() <= most_shared_bytes(t);
         }),
    rule("the ring takes three quarters of the room that it has, or all steps at least",
         [](const LinearProblem& p, const RingConfig& c, const DeviceTraits& t) {
             const RingGeometry g = geometry(p, c);
             const std::int64_t ring = static_cast<std::int64_t>(g.stages) * g.stage_bytes();
             const std::int64_t room = most_shared_bytes(t) - (g.shared_bytes() - ring);
             const std::int64_t steps = g.most_steps() * rounds(p, c, t);
             if (g.stages >= steps) return g.stages < 2 * steps || g.stages == 4;
             return 4 * ring >= 3 * room || c.stages == 32;
         }),
};

// Fitted to 2,600 configs of calls of 4096 x 4096 to 4096 x 128256 at 1 to 64 tokens on an H200: off by 3 %.
/// Share of the memory's bandwidth that copies into the ring reach, times the tenth that calibration.h adds
/// to a variant that it does not name; how much more than its share a multiprocessor takes in.
constexpr double memory_share = 0.955;
constexpr double sm_share = 1.25;
/// Bytes a cycle through the port of a multiprocessor.
constexpr double port_bytes = 64;
/// Cycles of a product of 64 rows x 16 columns with few tokens, and for each token with many; of a stage
/// beside its products.
constexpr double product_cycles = 16;
constexpr double token_cycles = 0.66;
constexpr double stage_cycles = 100;
/// Microseconds of a call beside its stages: plain, and behind another with early weights; what it loses
/// where these are half of the ring only.
constexpr double call_us = 3.1;
constexpr double early_call_us = 1.4;
constexpr double half_us = 0.2;
/// What a norm costs that is part of the products, and for each token that a block has: in steps of an H200
/// it gained 0.8 us of the launch that it saves with one token, nothing with 8, and lost 1.6 with 16.
constexpr double norm_us = 1.0;
constexpr double norm_token_us = 0.12;
/// Of a tile's end, and each other block whose sums come.
constexpr double finish_us = 0.27;
constexpr double cluster_us = 0.3;

/// Whatever is slowest of memory (or the busiest multiprocessor's share of it), the ring's way there (a
/// microsecond from asking for a stage until it is there), the port, and the tensor cores; and what is not
/// hidden between two calls.
double predict(const LinearProblem& p, const RingConfig& c, const DeviceTraits& traits) {
    const RingGeometry g = geometry(p, c);
    const double bytes_per_us = memory_share * 1e-6 * traits.memory_bytes_per_s;
    const double cycles_per_us = busy_cycles_per_us(traits);
    const auto tiles = static_cast<double>(rounds(p, c, traits));
    const double parts = static_cast<double>(c.cluster_k);
    const double share = tiles * static_cast<double>(c.rows) / static_cast<double>(p.out) / parts;
    const double memory_us = (p.weight_bytes() + p.x_bytes() + p.out_bytes()) / bytes_per_us;
    const double busiest_us = share * p.weight_bytes() * traits.sm_count / (sm_share * bytes_per_us);
    const double draw_us = tiles * g.most_steps() / g.stages;
    const double port_us =
        (share * p.weight_bytes() + tiles * p.x_bytes() / parts) / port_bytes / cycles_per_us;
    const double products = 4.0 * g.stage_panels() * g.row_blocks();
    const double multiply = products * std::max(product_cycles, token_cycles * g.n());
    const double product_us =
        tiles * g.most_steps() * std::max(multiply, (stage_cycles + multiply) / g.consumers) / cycles_per_us;
    double sum = 0;
    for (const double us : {std::max(memory_us, busiest_us), draw_us, port_us, product_us})
        sum += std::pow(us, 4);
    const double ends_us = finish_us * (1.0 + static_cast<double>(g.owned_rows() * c.tokens) / 512.0) +
                           cluster_us * (parts - 1.0);
    const double early_us = early_call_us + (c.early == 1 ? half_us : 0.0);
    const double normalizing_us =
        g.norm ? norm_us + norm_token_us * static_cast<double>(c.tokens) : normalize_us(p, traits);
    return std::pow(sum, 0.25) + ends_us + normalizing_us + (c.programmatic == 0 ? call_us : early_us);
}

/// Weights from which it is the fastest, or 5 % behind at most, in nearly every call that was measured, where
/// tiles of 16 rows are enough for two thirds of the multiprocessors.
constexpr double least_bytes = 4.5e6;
/// Weights from which a call asks for all of the ring before the call ahead has ended: less than a ring of
/// each multiprocessor holds comes soon enough behind it (1 to 5 % for half of it, 2 % against above).
constexpr double bytes_of_all_rings = 30e6;
/// Weights up to which a call is so short that it pays to leave a quarter of the multiprocessors to the
/// blocks of the next one, which fill their rings meanwhile: 5 % in the mean.
constexpr double bytes_of_short_calls = 14e6;

/// For up to 16 tokens: the best by the cost model. A single token's norm costs gemv less.
std::optional<RingConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const LinearProblem p(problem);
    if ((p.norm && p.tokens == 1) || p.tokens > 16 || p.weight_bytes() < least_bytes ||
        3 * p.out < 2 * 16 * traits.sm_count || !traits.has_programmatic_launch())
        return std::nullopt;
    const std::int64_t early = p.norm || p.weight_bytes() >= bytes_of_all_rings ? 2 : 1;
    const std::vector<RingConfig> configs = combinations(
        {RingConfig{.tokens = tokens_held(p), .consumers = 2, .early = early, .programmatic = 1}}, tunables,
        {&RingConfig::rows, &RingConfig::stage_columns, &RingConfig::stages});
    if (p.weight_bytes() < bytes_of_short_calls) {
        std::vector<RingConfig> beside = configs;
        std::erase_if(beside,
                      [&](const RingConfig& c) { return 4 * ceil_div(p.out, c.rows) > 3 * traits.sm_count; });
        const auto best = best_of(problem, ring, std::span<const RingConfig>(beside), traits);
        if (best) return best;
    }
    return best_of(problem, ring, std::span<const RingConfig>(configs), traits);
}

}  // namespace

const Variant ring{
    .name = "ring",
    .summary =
        "few tokens: weights pass through a ring in shared memory that tensor copies fill, warpgroup tensor "
        "cores read them there",
    .source = "linear/ring/kernel.cu",
    .min_arch = {9, 0, true},
    .tunables = tunables,
    .constraints = constraints,
    .kernels = ring_kernels,
    .plan = typed<ring_plan>,
    .fallback = typed<fallback>,
    .access_elements = typed<ring_access_elements>,
    .predict_us = typed<predict>};

}  // namespace hone::linear
