// Sample, all of the family that is not declared: space and preference of both variants, which are one
// kernel, clusters whose blocks hold a row, and a block by itself that reads its row anew; rules, tolerance,
// work, and the reference's launch.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernel_templates/kit/accesses.h"
#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/launches.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/kit/work.h"
#include "kernel_templates/sample/row_plan.h"

namespace hone {
namespace sample {
namespace {

constexpr auto threads = tunable<&RowConfig::threads>("threads a block", {128, 256, 512, 1024});
constexpr auto vector = tunable<&RowConfig::vector>("elements a memory access", {1, 2, 4, 8});
constexpr auto programmatic = programmatic_launch<&RowConfig::programmatic>();

constexpr auto cluster_tunables = tunables_of({
    threads,
    tunable<&RowConfig::cluster>("blocks that share a row", {2, 4, 8, 16}),
    vector,
    tunable<&RowConfig::home>("where the row stays: 0 registers, as masses; 1 shared memory; 2 there, and "
                              "counted by value where tokens are filtered",
                              {0, 1, 2}),
    tunable<&RowConfig::load_hint>("cache hint of loads: 0 normal, 2 streaming", {0, 2}),
    programmatic,
});
constexpr auto plain_tunables = tunables_of({
    threads,
    tunable<&RowConfig::cluster>("blocks that share a row", {1}),
    vector,
    tunable<&RowConfig::home>("where the row stays: 3 global memory, read again at each look", {3}),
    tunable<&RowConfig::load_hint>("cache hint of loads: 0 normal", {0}),
    programmatic,
});

/// Logits that a thread owns.
std::int64_t held(const SampleProblem& p, const RowConfig& c) { return geometry(p, c).steps() * c.vector; }

constexpr Constraint vector_is_widest =
    rule("accesses are the widest that divide the vocabulary and fit 16 bytes, or half of that",
         [](const SampleProblem& p, const RowConfig& c) {
             return is_wide_access(p.vocabulary, p.element_bytes(), c.vector);
         });
/// A block alone has the fewest threads at 128, a cluster at two such blocks.
constexpr Constraint threads_own_logits = rule(
    "at least half of the threads that share a row must own logits",
    [](const SampleProblem& p, const RowConfig& c) {
        return (c.threads == 128 && c.cluster <= 2) || c.threads * c.cluster * c.vector < 2 * p.vocabulary;
    });

constexpr Constraint cluster_constraints[] = {
    vector_is_widest,
    threads_own_logits,
    rule("a thread holds up to 32 masses, in blocks of up to 512",
         [](const SampleProblem& p, const RowConfig& c) {
             return c.home != 0 || (c.threads <= 512 && held(p, c) <= 32);
         }),
    rule("values are counted of bf16 logits without a cap, by two at least, for filters",
         [](const SampleProblem& p, const RowConfig& c) {
             return c.home != 2 || (p.dtype == Dtype::bf16 && p.filters && p.softcap == 0 && c.vector >= 2);
         }),
    rule("a row's share and the histograms must fit shared memory",
         [](const SampleProblem& p, const RowConfig& c, const DeviceTraits& t) {
             return shared_bytes(p, c) <= t.max_shared_bytes_per_block;
         }),
    rule("clusters of 16 blocks exist on data-centre chips of compute capability 9 and 10",
         [](const RowConfig& c, const DeviceTraits& t) {
             return c.cluster <= 8 || t.compute_major == 9 || t.compute_major == 10;
         }),
};
constexpr Constraint plain_constraints[] = {vector_is_widest, threads_own_logits,
                                            programmatic_needs_sm_90<RowConfig>};

/// What is computed anew at each look at a token.
enum class Look {
    held,    ///< nothing: masses stay in registers
    masses,  ///< its mass
    values,  ///< its mass, but for the histogram that of each value
};
/// What the cost model needs of a candidate.
struct Cost {
    double blocks = 1;    ///< that share a row
    double resident = 1;  ///< blocks that share a multiprocessor
    double threads = 0;   ///< a block
    double tokens = 0;    ///< a block
    double access_bytes = 16;
    Look look = Look::masses;
    bool streams = false;
    bool programmatic = false;
};

/// Microseconds of the meetings of a row's blocks, and of threads in them; slots of values are looked through.
double exchanges_us(const Cost& cost, double together) {
    const double values_us = cost.look == Look::values ? 8 * (0.75 + 0.25 * together) : 0.0;
    return 6 + 0.26 * cost.blocks + 1.5e-3 * cost.threads + values_us;
}

/// Narrow accesses are more instructions.
double access_factor(const Cost& cost) {
    return cost.access_bytes >= 16 ? 1.0 : cost.access_bytes >= 8 ? 1.048 : 1.975;
}

/// Nanoseconds of a token of a block: few threads leave arithmetic waiting, and blocks that share a
/// multiprocessor share its lanes.
double looks_ns(const Cost& cost, double together) {
    switch (cost.look) {
        case Look::held: return 0.21 * together + 25 / cost.threads;
        case Look::masses: return 0.196 * together + 203 / cost.threads;
        case Look::values: return 0.03 * together + 73 / cost.threads;
    }
    return 0;
}

/// Clusters of a multiprocessor a block that run at once: the groups of multiprocessors that clusters stay
/// within leave some over.
double clusters_at_once(const Cost& cost, const DeviceTraits& traits) {
    const double all = std::floor(traits.sm_count / cost.blocks);
    return cost.blocks > 1 ? std::max(all - 2, 1.0) : all;
}

/// Modelled microseconds: a launch, and for each wave of clusters the exchanges, which take longer the more
/// blocks meet, and the looks at a block's logits; or what all logits take, of memory and of instructions.
/// Fitted to 1,134 configs on an H200 with 128,256 logits in bf16 and 1 to 256 rows, and to the races of an
/// H100 and an H200 that ship, with 50,257 and with fp16.
double modelled_us(const SampleProblem& p, const Cost& cost, const DeviceTraits& traits) {
    // Blocks share a multiprocessor before all others have one.
    const double blocks = static_cast<double>(p.rows) * cost.blocks;
    const double together = std::min(cost.resident, std::ceil(2 * blocks / traits.sm_count));
    const double rows = static_cast<double>(p.rows);
    const double waves = std::ceil(rows / (clusters_at_once(cost, traits) * cost.resident));

    const double clock = 1.98e6 / std::max(traits.sm_clock_khz, 1);
    const double access = access_factor(cost);
    const double part = p.filters ? 1.0 : 0.3;
    const double body_us =
        part * clock * (exchanges_us(cost, together) + 1e-3 * looks_ns(cost, together) * access * cost.tokens);

    constexpr double logits_a_cycle = 2.3;  // of a multiprocessor, in accesses of 16 bytes
    const double logits = static_cast<double>(p.rows) * static_cast<double>(p.vocabulary);
    const double bytes = logits * static_cast<double>(p.element_bytes());
    const double memory_us = bytes / (0.86e-6 * traits.memory_bytes_per_s);
    const double issue_us = access * clock * logits / (logits_a_cycle * 1980 * traits.sm_count);
    const double all_us = std::max(memory_us, issue_us);
    const double call_us = std::max(waves * body_us, all_us) + 0.15 * std::min(waves * body_us, all_us);
    return (cost.programmatic ? 0.3 : 1.2) + (cost.streams ? 0.996 : 1.0) * call_us;
}

/// By the row's home.
constexpr Look looks[] = {Look::held, Look::masses, Look::values, Look::masses};

/// Registers of a thread, of what the compiler has made of 128,256 logits.
std::int64_t registers(const SampleProblem& p, const RowConfig& c) {
    if (p.filters) return c.home == 0 ? 128 : 64;
    return c.home == 0 ? 16 + 2 * held(p, c) : 56;
}

/// Blocks that share a multiprocessor.
std::int64_t resident(const SampleProblem& p, const RowConfig& c, const DeviceTraits& traits) {
    constexpr std::int64_t reserved_bytes = 1024;  // of each block, by the driver
    const std::int64_t by_shared = traits.shared_bytes_per_sm / (shared_bytes(p, c) + reserved_bytes);
    const std::int64_t by_registers = traits.registers_per_sm / (registers(p, c) * c.threads);
    const std::int64_t by_threads = traits.max_threads_per_sm / c.threads;
    return std::max<std::int64_t>(std::min({by_shared, by_registers, by_threads}), 1);
}

double predict_us(const SampleProblem& p, const RowConfig& c, const DeviceTraits& traits) {
    const bool is_alone = c.cluster == 1;
    const std::int64_t tokens = is_alone ? p.vocabulary : geometry(p, c).block_tokens();
    return modelled_us(p,
                       {.blocks = static_cast<double>(c.cluster),
                        .resident = is_alone ? 1.0 : static_cast<double>(resident(p, c, traits)),
                        .threads = static_cast<double>(c.threads),
                        .tokens = static_cast<double>(tokens),
                        .access_bytes = static_cast<double>(c.vector * p.element_bytes()),
                        .look = looks[c.home],
                        .streams = c.load_hint == 2,
                        .programmatic = c.programmatic != 0},
                       traits);
}

std::int64_t access_elements(const SampleProblem&, const RowConfig& c) { return c.vector; }

std::optional<RowConfig> cluster_fallback(const Problem& problem, const DeviceTraits& traits) {
    const SampleProblem p(problem);
    const RowConfig start{.threads = 128,
                          .cluster = 2,
                          .vector = widest_vector(p.vocabulary, p.element_bytes()),
                          .programmatic = 1};
    const std::vector<RowConfig> configs =
        combinations({start}, cluster_tunables, {&RowConfig::threads, &RowConfig::cluster, &RowConfig::home});
    return best_of(problem, cluster_row, std::span<const RowConfig>(configs), traits);
}
std::optional<RowConfig> plain_fallback(const SampleProblem& p, const DeviceTraits& traits) {
    RowConfig c{.threads = 1024,
                .cluster = 1,
                .vector = widest_vector(p.vocabulary, p.element_bytes()),
                .home = 3,
                .programmatic = traits.has_programmatic_launch() ? 1 : 0};
    while (c.threads > 128 && c.threads * c.vector >= 2 * p.vocabulary) c.threads /= 2;
    return c;
}

}  // namespace

const Variant cluster_row{.name = "cluster_row",
                          .summary =
                              "a cluster of blocks holds a row in registers or shared memory and "
                              "meets through distributed shared memory",
                          .source = "sample/row.cu",
                          .min_arch = {9, 0, false},
                          .tunables = cluster_tunables,
                          .constraints = cluster_constraints,
                          .kernels = row_kernels,
                          .plan = typed<row_plan>,
                          .fallback = typed<cluster_fallback>,
                          .access_elements = typed<access_elements>,
                          .predict_us = typed<predict_us>};

const Variant plain{.name = "plain",
                    .summary = "a block reads its row anew for each step, on any chip",
                    .source = "sample/row.cu",
                    .tunables = plain_tunables,
                    .constraints = plain_constraints,
                    .kernels = row_kernels,
                    .plan = typed<row_plan>,
                    .fallback = typed<plain_fallback>,
                    .access_elements = typed<access_elements>,
                    .predict_us = typed<predict_us>};

namespace {

const Variant* const variants[] = {&cluster_row, &plain};

std::string validate(const Problem& problem) {
    const SampleProblem p(problem);
    if (p.rows > (std::int64_t{1} << 40) / p.vocabulary) {
        return "rows x vocabulary is " + std::to_string(p.rows) + " x " + std::to_string(p.vocabulary) +
               "; allowed: at most 2^40 elements";
    }
    return {};
}

// Tokens are the same to the last: a weight has the same bits wherever it is computed, and sums of masses are
// whole numbers.
Tolerance tolerance(const Problem&, int argument) {
    if (argument == out) return {.relative_l2 = 0, .max_abs = 0, .max_rel = 0};
    return {.relative_l2 = 1e-6, .max_abs = 1e-6, .max_rel = 1e-6};
}

Work work(const Problem& problem) {
    const SampleProblem p(problem);
    const double logits = static_cast<double>(p.rows) * static_cast<double>(p.vocabulary);
    return {.bytes = bytes_of(declared_arguments(problem)), .flops = 20.0 * logits};
}

constexpr Kernel reference_kernels[] = {{"sample_reference", call_args}};

Plan reference_plan(const Problem& problem) {
    return plan_of(launch(reference_kernels[0], grid_of(SampleProblem(problem).rows), 1024));
}

}  // namespace
}  // namespace sample

extern const Family sample_family;
const Family sample_family = sample::declared({
    .variants = sample::variants,
    .validate = sample::validate,
    .tolerance = sample::tolerance,
    .work = sample::work,
    .reference_source = "sample/reference.cu",
    .reference_kernels = sample::reference_kernels,
    .reference_plan = sample::reference_plan,
});

}  // namespace hone
