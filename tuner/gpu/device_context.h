// The measuring worker's GPU: driver, primary context, one stream, and the only way this process waits for
// it: polling against a deadline. Never a wait without a limit, because a kernel may never end.
#pragma once

#include <memory>
#include <optional>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/stream.h"
#include "tuner/gpu/gpu_monitor.h"
#include "tuner/measure/measurer.h"
#include "tuner/worker/channel.h"

namespace hone::tuner {

/// The GPU did not finish in time. The process must end: nothing can stop a running kernel.
struct DeadlinePassed {};

/// Needs no context. Without the NVRTC version, which the driver does not know. Throws CudaError.
[[nodiscard]] DeviceInfo device_info(const runtime::Driver& driver, int ordinal);

class DeviceContext {
  public:
    /// Throws LibraryError or CudaError.
    explicit DeviceContext(int ordinal);

    [[nodiscard]] const runtime::Driver& driver() const { return *driver_; }
    [[nodiscard]] CUstream stream() const { return stream_.get(); }
    /// Without the NVRTC version, which this process does not need.
    [[nodiscard]] const DeviceInfo& info() const { return info_; }
    [[nodiscard]] GpuMonitor& monitor() { return monitor_; }
    /// nullptr without NVML, or where it does not know this GPU.
    [[nodiscard]] const runtime::NvmlDevice* nvml() const { return nvml_.get(); }
    void check(CUresult result, const char* what) const { runtime::check(driver(), result, what); }

    /// Waits until everything enqueued so far is done. Throws DeadlinePassed, or CudaError when it failed.
    void finish(Clock::time_point deadline) const;
    /// Waits for one recorded event.
    void wait(CUevent event, Clock::time_point deadline) const;

  private:
    std::shared_ptr<const runtime::Driver> driver_;
    std::optional<runtime::PrimaryContext> context_;
    DeviceInfo info_;
    runtime::Stream stream_;
    runtime::Event done_;
    std::shared_ptr<const runtime::NvmlDevice> nvml_;
    GpuMonitor monitor_;
};

}  // namespace hone::tuner
