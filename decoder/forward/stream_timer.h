// What the GPU's stream takes for something, by two events in it: for benchmarks and races of kernels.
#pragma once

#include "decoder/gpu/gpu.h"

namespace hone::decoder {

class StreamTimer {
  public:
    /// Throws CudaError, as all of it.
    explicit StreamTimer(const Gpu& gpu);

    /// What is put into the stream between the two is timed.
    void begin() const;
    void end() const;
    /// Whether the GPU has come to the end. Never waits.
    [[nodiscard]] bool has_ended() const;
    /// Microseconds from one to the other, once it has.
    [[nodiscard]] double us() const;

    /// The graph between the two.
    void launch(CUgraphExec graph) const;
    /// Microseconds of a launch, which is waited for.
    [[nodiscard]] double replay_us(CUgraphExec graph) const;

  private:
    const Gpu& gpu_;
    runtime::Event begin_;
    runtime::Event end_;
};

}  // namespace hone::decoder
