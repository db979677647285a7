#include <algorithm>
#include <vector>

#include "kernel_templates/attention_prefill/mma/plan.h"
#include "kernel_templates/attention_prefill/rank.h"
#include "kernel_templates/attention_prefill/variants.h"
#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/rules.h"

namespace hone::attention_prefill {
namespace warp_mma {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&MmaConfig::warps>("of a block", {4, 8}),
    tunable<&MmaConfig::warp_rows>("queries of a warp", {16, 32}),
    tunable<&MmaConfig::tile_n>("keys of a stage", {16, 32, 64, 96, 128}),
    tunable<&MmaConfig::stages>("of the ring that keys and values share", {2, 3, 4}),
    tunable<&MmaConfig::query_in_registers>("1: queries stay in registers, 0: in shared memory", {0, 1}),
    tunable<&MmaConfig::blocks_per_sm>("blocks that share a multiprocessor", {1, 2, 3}),
    programmatic_launch<&MmaConfig::programmatic>(),
});
constexpr int most_blocks = 3;

/// Stages come by asynchronous copies, and not through registers.
bool copies_ahead(const AttentionProblem& p, const DeviceTraits& traits) {
    return traits.has_async_copy() && !p.fp8_cache();
}

/// 0: not even one.
std::int64_t resident_blocks(const AttentionProblem& p, Geometry g, const DeviceTraits& traits) {
    const std::int64_t reserved = traits.compute_major >= 8 ? 1024 : 0;  // of shared memory, a block
    if (g.shared_bytes() > traits.max_shared_bytes_per_block) return 0;
    // Copies through registers, what is out of the ordinary, and the newest chips take some more.
    const int more = (copies_ahead(p, traits) ? 0 : 32) + (traits.compute_major >= 10 ? 4 : 0) +
                     (p.window > 0 ? 8 : 0) + (p.softcap ? 4 : 0) + (p.packed() ? 4 : 0) +
                     (p.paged() ? g.rounds() + 8 : 0);
    std::int64_t blocks = 0;
    for (g.blocks_per_sm = 1; g.blocks_per_sm <= most_blocks; ++g.blocks_per_sm) {
        if (g.blocks_per_sm * (g.shared_bytes() + reserved) <= traits.shared_bytes_per_sm &&
            g.blocks_per_sm * g.threads() <= traits.max_threads_per_sm &&
            g.registers() + more <= g.register_budget())
            blocks = g.blocks_per_sm;
    }
    return blocks;
}

constexpr Constraint constraints[] = {
    rule("tensor cores multiply fp16 and bf16, before sm_80 fp16 alone",
         [](const AttentionProblem& p, const DeviceTraits& t) {
             const Dtype dtype = p.dtype;
             return dtype == Dtype::fp16 || (dtype == Dtype::bf16 && t.compute_major >= 8);
         }),
    rule("rows must start at multiples of 16 bytes: head_dim is a multiple of 8",
         [](const AttentionProblem& p) { return p.head_dim % 8 == 0; }),
    rule("more stages than two need asynchronous copies: sm_80, and no codes, which come through registers",
         [](const AttentionProblem& p, const MmaConfig& c, const DeviceTraits& t) {
             return c.stages == 2 || copies_ahead(p, t);
         }),
    programmatic_needs_sm_90<MmaConfig>,
    rule("a stage is copied in whole rounds of eight threads a row",
         [](const AttentionProblem& p, const MmaConfig& c) {
             return c.tile_n % geometry(p, c).rows_a_round() == 0;
         }),
    rule("stages of 16 keys are for heads of more than 192 elements",
         [](const AttentionProblem& p, const MmaConfig& c) { return c.tile_n > 16 || p.head_dim > 192; }),
    rule("more than half of a tile's queries must exist",
         [](const AttentionProblem& p, const MmaConfig& c) {
             return tile_is_filled(p, c.warps * c.warp_rows, 64);
         }),
    rule("as many blocks are resident as shared memory and registers allow, up to three",
         [](const AttentionProblem& p, const MmaConfig& c, const DeviceTraits& t) {
             return c.blocks_per_sm == resident_blocks(p, geometry(p, c), t);
         }),
};

/// What a multiprocessor does in a cycle: floating-point operations of mma.sync with float32 sums (data
/// sheets' rates and clocks; sm_90 gives it 62 % of what wgmma gets), and float32 instructions.
struct Rates {
    double multiply;
    double arithmetic;
};
Rates rates(const DeviceTraits& traits) {
    switch (traits.compute_major) {
        case 7: return {1024, 64};
        case 8: return traits.compute_minor == 0 ? Rates{2048, 64} : Rates{1024, 128};
        case 9: return {2540, 128};
        case 10: return {2048, 128};
        default: return {512, 128};
    }
}

/// Products and what shared memory's port carries for them, 128 bytes a cycle, run beside each other; the
/// softmax, an exponential on 16 lanes and a few instructions a score, hides behind other warps' products as
/// far as there are any.
double block_cycles(const AttentionProblem& p, const Geometry& g, const DeviceTraits& traits) {
    const Rates rate = rates(traits);
    const double scores = g.tile_m() * g.tile_n;
    const double row_bytes = 2.0 * g.padded_dim();
    const double multiply = 4.0 * scores * g.padded_dim() / rate.multiply;
    const double read_rows = 2.0 * g.warps * g.tile_n + (g.query_in_registers ? 0.0 : g.tile_m());
    const double port = (read_rows + 2.0 * g.tile_n) * row_bytes / 128;
    const double exponentials = p.softcap ? 3.0 : 1.0;
    const double softmax = scores * (exponentials / 16 + 6 / rate.arithmetic);
    const int resident = g.warps * g.blocks_per_sm;
    const double exposed = resident >= 16 ? 0.4 : resident >= 8 ? 0.6 : 1.0;
    // Two barriers, and the wait for a stage that has only just been asked for.
    const double waits = (g.stages == 2 ? 500.0 : 250.0) / g.blocks_per_sm;
    const double pages = p.paged() ? 100.0 : 0.0;  // to look them up, and for addresses
    return std::max(1.1 * multiply, port) + exposed * softmax + waits + pages;
}

double predict(const AttentionProblem& p, const MmaConfig& c, const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    const double us = predict_us(p,
                                 {.tile_m = g.tile_m(),
                                  .tile_n = g.tile_n,
                                  .warp_rows = g.warp_rows,
                                  .block_cycles = block_cycles(p, g, traits),
                                  .overhead_cycles = 3000.0 / g.blocks_per_sm,
                                  .blocks_per_sm = g.blocks_per_sm},
                                 traits);
    return us - (c.programmatic != 0 ? 0.5 : 0.0);
}

/// The config that the cost model likes best, with rings of two or three stages.
std::optional<MmaConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const AttentionProblem p(problem);
    if (p.dtype == Dtype::fp32 || p.head_dim % 8 != 0) return std::nullopt;
    std::vector<MmaConfig> configs;
    const auto shapes = combinations<MmaConfig>({{}}, tunables,
                                                {&MmaConfig::warps, &MmaConfig::warp_rows, &MmaConfig::tile_n,
                                                 &MmaConfig::query_in_registers, &MmaConfig::stages});
    for (MmaConfig c : shapes) {
        if (c.tile_n == 96 || c.stages > 3) continue;
        c.blocks_per_sm = resident_blocks(p, geometry(p, c), traits);
        c.programmatic = traits.has_programmatic_launch() ? 1 : 0;
        configs.push_back(c);
    }
    return best_of<MmaConfig>(problem, attention_prefill::mma, configs, traits);
}

}  // namespace
}  // namespace warp_mma

const Variant mma{.name = "mma",
                  .summary = "warp tensor cores fed from a ring in shared memory, softmax in registers",
                  .source = "attention_prefill/mma/kernel.cu",
                  .min_arch = {7, 5, false},
                  .tunables = warp_mma::tunables,
                  .constraints = warp_mma::constraints,
                  .kernels = warp_mma::kernels,
                  .plan = typed<warp_mma::plan>,
                  .fallback = typed<warp_mma::fallback>,
                  .access_elements = typed<warp_mma::access_elements>,
                  .predict_us = typed<warp_mma::predict>};

}  // namespace hone::attention_prefill
