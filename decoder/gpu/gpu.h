// One GPU as the decoder uses it: driver, context, a stream, and one for copies beside it. What it makes must
// not outlive it.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/stream.h"

namespace hone::decoder {

using Bytes = runtime::DeviceBuffer<std::byte>;

/// What a GPU may take for a step, or a piece of the weights, where nobody says so: it hangs where that has
/// not ended by then.
inline constexpr std::chrono::minutes usual_longest_step{2};

class Gpu {
  public:
    /// Throws LibraryError or CudaError where there is none. The context is current on the calling thread as
    /// long as the object lives. `longest_step`: what it may take for a step, for the inputs of one, or for a
    /// piece of the weights.
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
    /// The same for what is brought to the GPU before the first step; a core has other work meanwhile.
    void wait_for_load() const { wait_for_load(stream_.get()); }
    void wait_for_load(CUstream stream) const;

    [[nodiscard]] std::chrono::milliseconds longest_step() const { return longest_step_; }
    /// A step has not ended in the longest time: throws EngineFailure that says so, or `what`.
    [[noreturn]] void hang(std::string_view what = "ended a step") const;
    /// Whether that was so. What stands there is to be left as it is, as its owners do.
    [[nodiscard]] bool hangs() const { return driver_->leaves_all(); }

  private:
    void wait(CUstream stream) const;
    /// Within the longest time.
    template <class Rest>
    [[nodiscard]] bool ends(CUstream stream, Rest rest) const;
    [[nodiscard]] bool done(CUstream stream) const {
        const CUresult result = driver_->cuStreamQuery(stream);
        if (result == CUDA_ERROR_NOT_READY) return false;
        runtime::check(*driver_, result, "waiting for the GPU");
        return true;
    }

    std::chrono::milliseconds longest_step_;
    std::shared_ptr<const runtime::Driver> driver_;
    runtime::PrimaryContext context_;
    runtime::Stream stream_;
    runtime::Stream copies_;
};

}  // namespace hone::decoder
