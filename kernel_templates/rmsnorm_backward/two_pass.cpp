#include <algorithm>

#include "kernel_templates/kit/accesses.h"
#include "kernel_templates/rmsnorm_backward/rank.h"
#include "kernel_templates/rmsnorm_backward/two_pass_plan.h"

namespace hone::rmsnorm_backward {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&TwoPassConfig::threads>("threads a block", {128, 256, 512}),
    tunable<&TwoPassConfig::vector>("elements a memory access", {1, 2, 4, 8}),
    tunable<&TwoPassConfig::chunks>("parts of the rows that are summed apart", {1, 4, 16, 64, 256}),
    tunable<&TwoPassConfig::store_hint>("cache hint of stores: 0 normal, 1 streaming", {0, 1}),
    tunable<&TwoPassConfig::sum_lanes>("packets of columns that a block of the last launch adds", {8, 32}),
    programmatic_launch<&TwoPassConfig::programmatic>(),
});

constexpr Constraint constraints[] = {
    norm::vector_is_widest<TwoPassConfig, BackwardProblem>,
    rule("each warp of a chunk must have a row",
         [](const BackwardProblem& p, const TwoPassConfig& c) {
             return c.chunks == 1 || c.chunks * (c.threads / 32) <= p.rows;
         }),
    programmatic_needs_sm_90<TwoPassConfig>,
};

double predict(const BackwardProblem& norm, const TwoPassConfig& c, const DeviceTraits& traits) {
    const double blocks = static_cast<double>(tiles(norm, c) * c.chunks);
    const double resident = std::min(2048.0 / static_cast<double>(c.threads), blocks / traits.sm_count);
    const double thread_bytes =
        2.0 * static_cast<double>(c.vector * norm.element_bytes() * (norm.residual ? 3 : 2));
    const double row_bytes = static_cast<double>(norm.rows * norm.read_bytes());
    // What L2 still holds of the first pass's reads need not come from memory again.
    const double kept = std::min(1.0, 0.5 * static_cast<double>(traits.l2_bytes) / row_bytes);
    return predict_us(norm,
                      {.read_passes = 2.0 - kept,
                       .bytes_in_flight = thread_bytes * static_cast<double>(c.threads) * resident,
                       .wait_us = 0.15,
                       .instructions = 18,
                       .partial_rows = static_cast<double>(c.chunks),
                       .launches = 3,
                       .programmatic = c.programmatic != 0},
                      traits);
}

std::optional<TwoPassConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const BackwardProblem norm(problem);
    TwoPassConfig c;
    c.threads = 256;
    c.vector = widest_vector(norm.hidden, norm.element_bytes());
    c.sum_lanes = 8;
    c.programmatic = traits.has_programmatic_launch() ? 1 : 0;
    for (const std::int64_t count : tunables[index_of(&TwoPassConfig::chunks)].values.span()) {
        const std::int64_t before = c.chunks;
        c.chunks = count;
        if (count > 64 || !allowed(problem, {&two_pass, config_of(c)}, traits)) {
            c.chunks = before;
            break;
        }
    }
    return c;
}

}  // namespace

const Variant two_pass{.name = "two_pass",
                       .summary = "rows are read twice: for their factors, then for the gradients",
                       .source = "rmsnorm_backward/two_pass.cu",
                       .tunables = tunables,
                       .constraints = constraints,
                       .kernels = two_pass_kernels,
                       .plan = typed<two_pass_plan>,
                       .fallback = typed<fallback>,
                       .access_elements = typed<two_pass_access_elements>,
                       .predict_us = typed<predict>};

}  // namespace hone::rmsnorm_backward
