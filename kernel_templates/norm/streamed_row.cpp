#include <algorithm>

#include "kernel_templates/kit/accesses.h"
#include "kernel_templates/norm/rules.h"
#include "kernel_templates/norm/streamed_row_plan.h"

namespace hone::norm {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&StreamedRowConfig::threads>("threads a block", {128, 256, 512, 1024}),
    tunable<&StreamedRowConfig::vector>("elements a memory access", {1, 2, 4, 8}),
    tunable<&StreamedRowConfig::store_hint>("cache hint of stores: 0 normal, 1 streaming", {0, 1}),
    programmatic_launch<&StreamedRowConfig::programmatic>(),
});

constexpr Constraint constraints[] = {
    vector_is_widest<StreamedRowConfig>,
    rule("at least half of the threads must own columns, but for the smallest block",
         [](const NormProblem& p, const StreamedRowConfig& c) {
             return c.threads == 128 || c.threads * c.vector < 2 * p.hidden;
         }),
    programmatic_needs_sm_90<StreamedRowConfig>,
};

std::optional<StreamedRowConfig> fallback(const NormProblem& norm, const DeviceTraits& traits) {
    StreamedRowConfig c;
    c.vector = widest_vector(norm.hidden, norm.element_bytes());
    c.threads = 128;
    while (c.threads < 1024 && c.threads * c.vector * 4 < norm.hidden) c.threads *= 2;
    c.programmatic = traits.has_programmatic_launch() ? 1 : 0;
    return c;
}

/// A row's second reading comes from L1: where memory is the limit it costs nothing, as long as a thread has
/// few packets and the block therefore much in flight.
double share_factor(double bytes_per_thread) {
    return bytes_per_thread <= 64 ? 1.01 : bytes_per_thread <= 128 ? 1.14 : 1.5;
}

double predict(const NormProblem& norm, const StreamedRowConfig& c, const DeviceTraits& traits) {
    const std::int64_t packets = norm.packets(c.threads, c.vector);
    const double row_bytes = static_cast<double>(norm.read_bytes());
    Footprint footprint{.blocks = norm.rows,
                        .threads = c.threads,
                        .held_registers = 8,
                        .elements = static_cast<double>(packets * c.vector),
                        .work_factor = work_factor(norm) + (norm.residual ? 0.0 : 0.4),
                        .reducing_warps = static_cast<double>(c.threads) / 32,
                        .bytes_in_flight = row_bytes,
                        .latency_us = 0.15,
                        .slowdown = hint_factor(norm, false, c.store_hint != 0, traits),
                        .programmatic = c.programmatic != 0};
    if (bound_by_memory(norm, traits)) {
        footprint.loads_ahead = true;
        footprint.slowdown *= share_factor(static_cast<double>(packets * c.vector * norm.element_bytes()));
    }
    return predict_us(norm, footprint, traits);
}

}  // namespace

Variant streamed_row(std::string_view source) {
    return {.name = "streamed_row",
            .summary = "a block walks over a row of any length and reads it again for each pass",
            .source = source,
            .tunables = tunables,
            .constraints = constraints,
            .kernels = streamed_row_kernels,
            .plan = typed<streamed_row_plan>,
            .fallback = typed<fallback>,
            .access_elements = typed<streamed_row_access_elements>,
            .predict_us = typed<predict>};
}

}  // namespace hone::norm
