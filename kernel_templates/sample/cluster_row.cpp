#include <algorithm>
#include <vector>

#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/sample/cluster_row_plan.h"
#include "kernel_templates/sample/rank.h"

namespace hone::sample {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&ClusterRowConfig::threads>("threads a block", {128, 256, 512, 1024}),
    tunable<&ClusterRowConfig::cluster>("blocks that share a row", {2, 4, 8, 16}),
    tunable<&ClusterRowConfig::vector>("elements a memory access", {1, 2, 4, 8}),
    tunable<&ClusterRowConfig::home>(
        "where the row stays: 0 registers, as masses; 1 shared memory; 2 there, and "
        "counted by value where tokens are filtered",
        {0, 1, 2}),
    tunable<&ClusterRowConfig::load_hint>("cache hint of loads: 0 normal, 2 streaming", {0, 2}),
    tunable<&ClusterRowConfig::programmatic>("1: programmatic dependent launch", {0, 1}),
});

/// Logits that a thread owns.
std::int64_t held(const SampleProblem& p, const ClusterRowConfig& c) {
    return geometry(p, c).steps() * c.vector;
}

constexpr Constraint constraints[] = {
    vector_is_widest<ClusterRowConfig>,
    rule("at least half of the cluster's threads must own logits",
         [](const SampleProblem& p, const ClusterRowConfig& c) {
             return (c.threads == 128 && c.cluster == 2) ||
                    c.threads * c.cluster * c.vector < 2 * p.vocabulary;
         }),
    rule("a thread holds up to 32 masses, in blocks of up to 512",
         [](const SampleProblem& p, const ClusterRowConfig& c) {
             return c.home != 0 || (c.threads <= 512 && held(p, c) <= 32);
         }),
    rule("values are counted of bf16 logits, by two at least, for filters",
         [](const SampleProblem& p, const ClusterRowConfig& c) {
             return c.home != 2 || (p.dtype == Dtype::bf16 && p.filters && c.vector >= 2);
         }),
    rule("a row's share and the histograms must fit shared memory",
         [](const SampleProblem& p, const ClusterRowConfig& c, const DeviceTraits& t) {
             return shared_bytes(p, c) <= t.max_shared_bytes_per_block;
         }),
    rule("clusters of 16 blocks exist on data-centre chips of compute capability 9 and 10",
         [](const ClusterRowConfig& c, const DeviceTraits& t) {
             return c.cluster <= 8 || t.compute_major == 9 || t.compute_major == 10;
         }),
};

constexpr Look looks[] = {Look::held, Look::masses, Look::values};

/// Blocks that share a multiprocessor.
std::int64_t resident(const SampleProblem& p, const ClusterRowConfig& c, const DeviceTraits& traits) {
    constexpr std::int64_t reserved_bytes = 1024;            // of each block, by the driver
    const std::int64_t together = c.home == 0 ? 512 : 1024;  // threads of up to 128 registers, or 64
    const std::int64_t by_threads = std::max<std::int64_t>(together / c.threads, 1);
    return std::clamp<std::int64_t>(traits.shared_bytes_per_sm / (shared_bytes(p, c) + reserved_bytes), 1,
                                    by_threads);
}

double predict(const SampleProblem& p, const ClusterRowConfig& c, const DeviceTraits& traits) {
    return predict_us(p,
                      {.blocks = static_cast<double>(c.cluster),
                       .resident = static_cast<double>(resident(p, c, traits)),
                       .threads = static_cast<double>(c.threads),
                       .tokens = static_cast<double>(geometry(p, c).block_tokens()),
                       .look = looks[c.home],
                       .programmatic = c.programmatic != 0},
                      traits);
}

std::optional<ClusterRowConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const SampleProblem p(problem);
    const ClusterRowConfig start{.threads = 128, .cluster = 2, .vector = widest_vector(p), .programmatic = 1};
    const std::vector<ClusterRowConfig> configs = combinations(
        {start}, tunables, {&ClusterRowConfig::threads, &ClusterRowConfig::cluster, &ClusterRowConfig::home});
    return best_of(problem, cluster_row, std::span<const ClusterRowConfig>(configs), traits);
}

}  // namespace

const Variant cluster_row{.name = "cluster_row",
                          .summary =
                              "a cluster of blocks holds a row in registers or shared memory and "
                              "meets through distributed shared memory",
                          .source = "sample/cluster_row.cu",
                          .min_arch = {9, 0, false},
                          .tunables = tunables,
                          .constraints = constraints,
                          .kernels = cluster_row_kernels,
                          .plan = typed<cluster_row_plan>,
                          .fallback = typed<fallback>,
                          .access_elements = typed<cluster_row_access_elements>,
                          .predict_us = typed<predict>};

}  // namespace hone::sample
