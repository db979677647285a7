// What variants that multiply by product.cuh cost, and the configs that their fallbacks choose from.
#pragma once

#include <vector>

#include "kernel_templates/linear/wgmma/product.h"

namespace hone::linear::gemm {

/// Blocks that find a place at the same time. Clusters do not fill every group of multiprocessors, and
/// nothing here can ask how many fit: a careful estimate.
[[nodiscard]] std::int64_t resident_blocks(const WgmmaConfig&, const DeviceTraits&);

/// Whether the copy engine can write the results: it writes rows that begin at multiples of 16 bytes.
[[nodiscard]] bool stores_by_engine(const LinearProblem&);

/// Proven shapes of tiles, for a fallback to choose from.
[[nodiscard]] std::vector<WgmmaConfig> proven_configs(const LinearProblem&);

/// Cycles of one stage: the tensor cores' own, and those of shared memory's port, 128 bytes each, which takes
/// the copies in and gives every instruction its 64 rows of the left operand and all rows of the right one.
[[nodiscard]] double stage_cycles(const Geometry&);

/// Microseconds of a call; and where what the products wait for comes in `fetched` of the usual time.
[[nodiscard]] double predict_fetched(const LinearProblem&, const WgmmaConfig&, const DeviceTraits&,
                                     double fetched);
[[nodiscard]] double predict(const LinearProblem&, const WgmmaConfig&, const DeviceTraits&);

/// Microseconds of a launch in front of the product that writes bytes which this reads. What it reads itself
/// comes from memory, what it writes goes there but for what level 2 keeps beside what else passes through
/// it, which takes about half as long.
[[nodiscard]] double rewrite_us(double read_bytes, double written_bytes, const DeviceTraits&);

}  // namespace hone::linear::gemm
