// One GPU as the decoder uses it: driver, context, a stream, and one for copies beside it. What it makes must
// not outlive it.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/stream.h"

namespace hone::decoder {

using Bytes = runtime::DeviceBuffer<std::byte>;

/// What a GPU may take for a step where nobody says so: it hangs where one has not ended by then.
inline constexpr std::chrono::minutes usual_longest_step{2};

class Gpu {
  public:
    /// Throws LibraryError or CudaError where there is none. The context is current on the calling thread as
    /// long as the object lives. `longest_step`: what it may take for a step, or for the inputs of one.
    explicit Gpu(int device, std::chrono::milliseconds longest_step = usual_longest_step)
        : longest_step_(longest_step),
          driver_(runtime::Driver::load()),
          context_(driver_, device),
          stream_(runtime::create_stream(*driver_)),
          copies_(runtime::create_stream(*driver_)) {}

    [[nodiscard]] const runtime::Driver& driver() const { return *driver_; }
    [[nodiscard]] CUcontext context() const { return context_.get(); }
    [[nodiscard]] CUstream stream() const { return stream_.get(); }
    /// For copies that wait for nothing that the other stream computes.
    [[nodiscard]] CUstream copies() const { return copies_.get(); }
    /// Whether all work of the stream has ended. Never waits. Throws CudaError for what has failed.
    [[nodiscard]] bool done() const { return done(stream_.get()); }
    /// The same of the copies.
    [[nodiscard]] bool has_copied() const { return done(copies_.get()); }
    /// Until a step has ended, and all else in the stream. Throws CudaError for what has failed, and as
    /// hang().
    void wait() const { wait(stream_.get()); }
    void wait_for_copies() const { wait(copies_.get()); }
    /// The same, however long it takes, for weights and graphs that are brought to the GPU.
    void wait_for_load() const {
        runtime::check(*driver_, driver_->cuStreamSynchronize(stream_.get()), "waiting for the GPU");
    }

    [[nodiscard]] std::chrono::milliseconds longest_step() const { return longest_step_; }
    /// A step has not ended in the longest time: throws EngineFailure that says so.
    [[noreturn]] void hang() const;
    /// Whether that was so. What stands there is to be left as it is, since the driver would wait for work
    /// that never ends.
    [[nodiscard]] bool hangs() const { return hangs_; }

  private:
    void wait(CUstream stream) const;
    [[nodiscard]] bool done(CUstream stream) const {
        const CUresult result = driver_->cuStreamQuery(stream);
        if (result == CUDA_ERROR_NOT_READY) return false;
        runtime::check(*driver_, result, "waiting for the GPU");
        return true;
    }

    std::chrono::milliseconds longest_step_;
    mutable std::atomic<bool> hangs_{false};
    std::shared_ptr<const runtime::Driver> driver_;
    runtime::PrimaryContext context_;
    runtime::Stream stream_;
    runtime::Stream copies_;
};

}  // namespace hone::decoder
