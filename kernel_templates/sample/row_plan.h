// How sample/row.cu is launched, and the variants that it is.
#pragma once

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/sample/declaration.h"
#include "kernel_templates/sample/numbers.cuh"

namespace hone::sample {

struct RowConfig {
    std::int64_t threads = 512;
    std::int64_t cluster = 8;
    std::int64_t vector = 1;
    std::int64_t home = 0;
    std::int64_t load_hint = 0;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel row_kernels[] = {{"sample_row", call_args}};

[[nodiscard]] constexpr bool counts_values(const RowConfig& c) { return c.home == 2; }

/// How a row is cut.
[[nodiscard]] constexpr Geometry geometry(const SampleProblem& p, const RowConfig& c) {
    return {p.vocabulary, static_cast<int>(c.cluster), static_cast<int>(c.threads),
            static_cast<int>(c.vector)};
}
[[nodiscard]] constexpr std::int64_t shared_bytes(const SampleProblem& p, const RowConfig& c) {
    const Geometry cut = geometry(p, c);
    const bool in_shared = c.home == 1 || c.home == 2;
    const std::int64_t row = in_shared ? cut.block_tokens() * p.element_bytes() : 0;
    const std::int64_t values = counts_values(c) ? 4 * value_slots * value_parts(cut, p.filters) : 0;
    return scratch_bytes(cut.blocks, cut.warps(), p.filters, counts_values(c)) + values + row;
}

[[nodiscard]] inline Plan row_plan(const SampleProblem& p, const RowConfig& c, const DeviceTraits&) {
    Launch first = launch(row_kernels[0], grid_of(p.rows * c.cluster), c.threads);
    first.cluster = grid_of(c.cluster);
    first.shared_bytes = static_cast<std::uint32_t>(shared_bytes(p, c));
    first.programmatic = c.programmatic != 0;
    return plan_of(first);
}

extern const Variant cluster_row;
extern const Variant plain;

}  // namespace hone::sample
