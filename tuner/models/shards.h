// A workload cut into shares that take about as long as each other, for machines that tune side by side: GPUs
// of one machine, or tasks of a job array that know nothing of each other. Pure functions of the workload.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "tuner/models/workload.h"

namespace hone::tuner {

/// About how long `hone tune` measures a problem at quick effort on a large GPU; other efforts and GPUs take
/// proportionally more or less. Worked out in integers, so that it is the same on every machine.
[[nodiscard]] std::chrono::milliseconds tuning_time(const Problem& problem);

/// `count` shares, some empty where there are fewer problems: a partition, the same on every machine. With
/// the problems of a static part side by side each is a run of neighbours, so that at most `count` - 1 static
/// parts are cut, whose shares make the same images again; the longest share is as short as such runs allow.
/// Within a share problems stand as in the workload.
[[nodiscard]] std::vector<Workload> shards_of(const Workload& workload, std::size_t count);
/// The same shares as numbers of problems, none of them empty, for those who exchange problems afterwards.
[[nodiscard]] std::vector<std::vector<std::size_t>> dealt(const Workload& workload, std::size_t count);

}  // namespace hone::tuner
