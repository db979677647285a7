#include <algorithm>
#include <vector>

#include "kernel_templates/attention_prefill/plain/plan.h"
#include "kernel_templates/attention_prefill/rank.h"
#include "kernel_templates/attention_prefill/variants.h"
#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/rules.h"

namespace hone::attention_prefill {
namespace cuda_cores {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&PlainConfig::tile_m>("queries of a block", {32, 64, 128}),
    tunable<&PlainConfig::tile_n>("keys whose scores stand in registers", {32, 64, 128}),
    tunable<&PlainConfig::thread_m>("queries of a thread", {4, 8}),
    tunable<&PlainConfig::columns>("of the keys that a step brings", {16, 32}),
    tunable<&PlainConfig::vector>("elements an access", {1, 4}),
    programmatic_launch<&PlainConfig::programmatic>(),
});

constexpr Constraint constraints[] = {
    rule("blocks have 128 or 256 threads",
         [](const AttentionProblem& p, const PlainConfig& c) {
             const int threads = geometry(p, c).threads();
             return threads == 128 || threads == 256;
         }),
    rule("wide accesses need rows of a multiple of as many elements",
         [](const AttentionProblem& p, const PlainConfig& c) { return p.head_dim % c.vector == 0; }),
    rule("steps of more columns are for heads that have them",
         [](const AttentionProblem& p, const PlainConfig& c) {
             return c.columns == 16 || c.columns <= p.head_dim;
         }),
    rule("more than half of a tile's queries must exist",
         [](const AttentionProblem& p, const PlainConfig& c) { return tile_is_filled(p, c.tile_m, 32); }),
    rule("a thread's results, scores and operands must fit its registers",
         [](const AttentionProblem& p, const PlainConfig& c) {
             return geometry(p, c).registers(static_cast<int>(p.element_bytes())) <= 220;
         }),
    rule("queries, weights and two buffers must fit shared memory",
         [](const AttentionProblem& p, const PlainConfig& c, const DeviceTraits& t) {
             return geometry(p, c).shared_bytes() <= t.max_shared_bytes_per_block;
         }),
    programmatic_needs_sm_90<PlainConfig>,
};

std::int64_t resident_blocks(const AttentionProblem& p, const Geometry& g, const DeviceTraits& traits) {
    const std::int64_t registers = g.registers(static_cast<int>(p.element_bytes())) + 24;
    return std::clamp<std::int64_t>(
        std::min({65536 / (registers * g.threads()), traits.shared_bytes_per_sm / (g.shared_bytes() + 1024),
                  std::int64_t{traits.max_threads_per_sm / g.threads()}}),
        1, 16);
}

/// Multiply-adds on all lanes beside what they read from shared memory: of a warp's vectors of queries and
/// weights two are distinct, of keys and values sixteen.
double block_cycles(const Geometry& g, std::int64_t together, const DeviceTraits& traits) {
    const double lanes = traits.compute_major == 7 || traits.arch() == Arch{8, 0, false} ? 64 : 128;
    const double key_columns = g.key_steps() * g.key_columns();
    const double products = static_cast<double>(g.tile_m) * g.tile_n * (key_columns + g.value_pitch());
    const double warps = g.threads() / 32.0;
    const double key_reads = key_columns / 4 * (2 * g.thread_m + 4 * g.thread_n());
    const double value_reads = g.tile_n / 4.0 * (2 * g.thread_m + 4 * g.groups() * g.width());
    const double steps = g.key_steps() + g.value_steps();
    const double staged = steps * g.rounds() * g.threads() * (g.vector == 1 ? 10.0 : 16.0) / 128;
    const double weigh = static_cast<double>(g.tile_m) * (12.0 * g.tile_n + 2.0 * g.value_pitch()) / lanes;
    const double waits = steps * 150.0 / static_cast<double>(together);
    return std::max(products / lanes, warps * (key_reads + value_reads)) + staged + weigh + waits;
}

double predict(const AttentionProblem& p, const PlainConfig& c, const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    const std::int64_t together = resident_blocks(p, g, traits);
    // Four warps leave one scheduler to each: nothing hides their latencies.
    const double alone = together * g.threads() < 256 ? 1.3 : 1.0;
    return predict_us(p,
                      {.tile_m = g.tile_m,
                       .tile_n = g.tile_n,
                       .warp_rows = 2 * g.thread_m,
                       .block_cycles = alone * block_cycles(g, together, traits),
                       .overhead_cycles = 4000.0 / static_cast<double>(together),
                       .blocks_per_sm = together},
                      traits) -
           (c.programmatic != 0 ? 0.5 : 0.0);
}

/// The config that the cost model likes best, of those that take any strides. One fits every chip: tiles of
/// 32 x 32.
std::optional<PlainConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const std::int64_t programmatic = traits.has_programmatic_launch() ? 1 : 0;
    std::vector<PlainConfig> configs =
        combinations<PlainConfig>({{.programmatic = programmatic}}, tunables,
                                  {&PlainConfig::tile_m, &PlainConfig::tile_n, &PlainConfig::thread_m});
    std::erase_if(configs, [](const PlainConfig& c) { return c.tile_n == 128; });
    return best_of<PlainConfig>(problem, attention_prefill::plain, configs, traits);
}

}  // namespace
}  // namespace cuda_cores

const Variant plain{.name = "plain",
                    .summary = "products on the CUDA cores: any type, head size and strides, on any chip",
                    .source = "attention_prefill/plain/kernel.cu",
                    .tunables = cuda_cores::tunables,
                    .constraints = cuda_cores::constraints,
                    .kernels = cuda_cores::kernels,
                    .plan = typed<cuda_cores::plan>,
                    .fallback = typed<cuda_cores::fallback>,
                    .access_elements = typed<cuda_cores::access_elements>,
                    .predict_us = typed<cuda_cores::predict>};

}  // namespace hone::attention_prefill
