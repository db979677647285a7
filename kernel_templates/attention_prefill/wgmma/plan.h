// A config of variant wgmma on the host, and what follows from it: for its plan and constraints (wgmma.cpp)
// and its cost model (wgmma_cost.cpp).
#pragma once

#include "kernel_templates/attention_prefill/attention_prefill.h"
#include "kernel_templates/attention_prefill/wgmma/geometry.cuh"

namespace hone::attention_prefill::warpgroup {

/// Of the tunables, in their order.
enum Index : std::size_t {
    consumers,
    tile_n,
    stages,
    query_stages,
    blocks_per_sm,
    query_in_registers,
    section_mib,
    dynamic,
    softmax_first,
    programmatic
};

[[nodiscard]] Geometry geometry(const AttentionProblem&, const Config&);
/// Whether tiles differ in length, so that sections of heads order them (wgmma_schedule.cuh: Order).
[[nodiscard]] inline bool has_sections(const AttentionProblem& p) { return p.causal && p.window == 0; }
/// A section has as many heads as have their keys and values in section_mib of level 2 together.
[[nodiscard]] Sections sections(const AttentionProblem&, const Config&);

/// Tiles of a head, and of all.
[[nodiscard]] std::int64_t rows(const AttentionProblem&, const Geometry&);
[[nodiscard]] std::int64_t tiles(const AttentionProblem&, const Geometry&);
/// Blocks that are resident on the device at once.
[[nodiscard]] std::int64_t places(const Config&, const DeviceTraits&);

/// Modelled time, see Variant::predict_us.
[[nodiscard]] double predict(const Problem&, const Config&, const DeviceTraits&);

}  // namespace hone::attention_prefill::warpgroup
