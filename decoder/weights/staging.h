// Pinned memory on the way from files to the GPU: a thread takes a place, fills it, and its copy runs beside
// what other threads read. Copies out of memory that is not pinned wait for each other in the driver. Called
// on many threads, in the GPU's context.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "decoder/gpu/gpu.h"

namespace hone::decoder {

class Staging {
  public:
    /// Nothing is allocated before it is needed: as many places as threads call at a time.
    Staging(const Gpu& gpu, std::int64_t place_bytes);
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;
    ~Staging();

    /// `fill` writes what goes to `to`, place_bytes at the most. Returns when it is there. Throws CudaError,
    /// EngineFailure where the GPU hangs, and what `fill` throws.
    void send(runtime::DeviceSpan<std::byte> to, const std::function<void(std::span<std::byte>)>& fill);
    /// All of `from`, however much that is.
    void send(runtime::DeviceSpan<std::byte> to, std::span<const std::byte> from);

  private:
    struct Place;
    [[nodiscard]] std::unique_ptr<Place> take();

    const Gpu& gpu_;
    std::size_t place_bytes_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Place>> free_;
};

}  // namespace hone::decoder
