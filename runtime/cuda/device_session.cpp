#include "runtime/cuda/device_session.h"

#include <fmt/format.h>

namespace hone::runtime {
namespace {

void check_device(const Driver& driver, int device) {
    const int count = driver.device_count();
    if (device >= 0 && device < count) return;
    throw CudaError(fmt::format("device {} does not exist; allowed: 0 to {}", device, count - 1),
                    CUDA_ERROR_INVALID_DEVICE);
}

}  // namespace

DeviceSession::DeviceSession(std::shared_ptr<const Driver> driver, int device) : driver_(std::move(driver)) {
    check_device(*driver_, device);
    traits_ = device_traits(*driver_, device);
    gpu_ = gpu_key(*driver_, device);
    CUcontext former = nullptr;
    check(*driver_, driver_->cuCtxGetCurrent(&former), "current context");
    context_.emplace(driver_, device);
    if (former != nullptr) check(*driver_, driver_->cuCtxSetCurrent(former), "current context");
}

// PrimaryContext would give this thread the context that the constructing thread once had.
DeviceSession::~DeviceSession() {
    CUcontext current = nullptr;
    const bool known = driver_->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current != nullptr;
    if (known) driver_->cuCtxSetCurrent(nullptr);
    context_.reset();
    if (known) driver_->cuCtxSetCurrent(current);
}

}  // namespace hone::runtime
