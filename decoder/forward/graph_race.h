// A race of steps' graphs: each is replayed once a round, in turns, so that all see the same clocks. Knows no
// kernels: what a graph has that others have not is its maker's matter.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "decoder/forward/stream_timer.h"

namespace hone::decoder {

/// What happens where the GPU does not survive the step of that number: it faults, or does not end within ten
/// seconds. Nothing can be launched, nor memory be given back: must not return.
using FaultSink = std::function<void(std::size_t step, bool hangs, const std::string& why)>;

/// Microseconds of each graph's replays, behind one that warms it up; none of a graph that is null. `fill`
/// puts a round's inputs in place. Throws CudaError.
[[nodiscard]] std::vector<std::vector<double>> race(const StreamTimer& timer,
                                                    std::span<const CUgraphExec> graphs,
                                                    const std::function<void(int round)>& fill, int rounds,
                                                    const FaultSink& on_fault);

}  // namespace hone::decoder
