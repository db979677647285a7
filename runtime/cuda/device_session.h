// One GPU as the dispatcher uses it: driver, primary context, traits, and what run() writes down. Shared by
// the Runtime and all kernels prepared from it, so that kernels outlive the Runtime. Immutable but for the
// atomics.
#pragma once

#include <memory>
#include <optional>

#include "runtime/cuda/driver.h"
#include "runtime/dispatch/run_log.h"

namespace hone::runtime {

class DeviceSession {
  public:
    /// Throws CudaError. A thread that had a context current keeps it; one that had none gets
    /// this device's primary context, as after cudaSetDevice().
    DeviceSession(std::shared_ptr<const Driver> driver, int device);
    DeviceSession(const DeviceSession&) = delete;
    DeviceSession& operator=(const DeviceSession&) = delete;
    ~DeviceSession();

    [[nodiscard]] const Driver& driver() const { return *driver_; }
    [[nodiscard]] CUcontext context() const { return context_->get(); }
    [[nodiscard]] const DeviceTraits& traits() const { return traits_; }
    [[nodiscard]] const cache::GpuKey& gpu() const { return gpu_; }

    /// Counters and the latest launch error: the only things that run() writes.
    [[nodiscard]] RunLog& log() const { return log_; }

  private:
    std::shared_ptr<const Driver> driver_;
    DeviceTraits traits_;
    cache::GpuKey gpu_;
    std::optional<PrimaryContext> context_;
    mutable RunLog log_;
};

}  // namespace hone::runtime
