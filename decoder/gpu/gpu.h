// One GPU as the decoder uses it: driver, context and a stream. What it makes must not outlive it.
#pragma once

#include <memory>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/stream.h"

namespace hone::decoder {

using Bytes = runtime::DeviceBuffer<std::byte>;

class Gpu {
  public:
    /// Throws LibraryError or CudaError where there is none. The context is current on the calling thread as
    /// long as the object lives.
    explicit Gpu(int device)
        : driver_(runtime::Driver::load()),
          context_(driver_, device),
          stream_(runtime::create_stream(*driver_)) {}

    [[nodiscard]] const runtime::Driver& driver() const { return *driver_; }
    [[nodiscard]] CUcontext context() const { return context_.get(); }
    [[nodiscard]] CUstream stream() const { return stream_.get(); }
    /// Whether all work of the stream has ended. Never waits. Throws CudaError for what has failed.
    [[nodiscard]] bool done() const {
        const CUresult result = driver_->cuStreamQuery(stream_.get());
        if (result == CUDA_ERROR_NOT_READY) return false;
        runtime::check(*driver_, result, "waiting for the GPU");
        return true;
    }
    void wait() const {
        runtime::check(*driver_, driver_->cuStreamSynchronize(stream_.get()), "waiting for the GPU");
    }

  private:
    std::shared_ptr<const runtime::Driver> driver_;
    runtime::PrimaryContext context_;
    runtime::Stream stream_;
};

}  // namespace hone::decoder
