// The CUDA driver as a table of functions, loaded with dlopen at run time: every binary starts on a machine
// without one. HONE_CUDA_LIBRARY names another library (tests load a fake). Immutable after loading, but for
// leave_all(); thread-safe. Owners of what the driver hands out: Module and PrimaryContext here, memory in
// memory.h, streams, events and graphs in stream.h. They keep a plain pointer to the Driver, which must
// outlive them.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>

#include "cache/records.h"
#include "kernel_templates/device_traits.h"
#include "runtime/system/shared_library.h"
#include "runtime/system/unique_handle.h"

namespace hone::runtime {

// name in cuda.h, which may be a macro for a versioned symbol: both spellings come from the one token
#define HONE_CUDA_FUNCTIONS(X)   \
    X(cuInit)                    \
    X(cuDriverGetVersion)        \
    X(cuGetErrorName)            \
    X(cuGetErrorString)          \
    X(cuDeviceGetCount)          \
    X(cuDeviceGet)               \
    X(cuDeviceGetName)           \
    X(cuDeviceGetAttribute)      \
    X(cuDeviceTotalMem)          \
    X(cuDeviceGetUuid)           \
    X(cuDeviceGetPCIBusId)       \
    X(cuDevicePrimaryCtxRetain)  \
    X(cuDevicePrimaryCtxRelease) \
    X(cuCtxGetCurrent)           \
    X(cuCtxSetCurrent)           \
    X(cuCtxPushCurrent)          \
    X(cuCtxPopCurrent)           \
    X(cuCtxGetDevice)            \
    X(cuCtxSynchronize)          \
    X(cuModuleLoadData)          \
    X(cuModuleUnload)            \
    X(cuModuleGetFunction)       \
    X(cuFuncGetAttribute)        \
    X(cuFuncSetAttribute)        \
    X(cuMemAlloc)                \
    X(cuMemFree)                 \
    X(cuMemGetInfo)              \
    X(cuMemAllocHost)            \
    X(cuMemFreeHost)             \
    X(cuMemcpyHtoD)              \
    X(cuMemcpyDtoH)              \
    X(cuMemcpyHtoDAsync)         \
    X(cuMemcpyDtoHAsync)         \
    X(cuMemcpyDtoDAsync)         \
    X(cuMemsetD8Async)           \
    X(cuMemsetD32Async)          \
    X(cuStreamCreate)            \
    X(cuStreamDestroy)           \
    X(cuStreamSynchronize)       \
    X(cuStreamQuery)             \
    X(cuStreamBeginCapture)      \
    X(cuStreamEndCapture)        \
    X(cuStreamIsCapturing)       \
    X(cuEventCreate)             \
    X(cuEventDestroy)            \
    X(cuEventRecord)             \
    X(cuEventQuery)              \
    X(cuEventSynchronize)        \
    X(cuEventElapsedTime)        \
    X(cuGraphInstantiate)        \
    X(cuGraphGetNodes)           \
    X(cuGraphLaunch)             \
    X(cuGraphUpload)             \
    X(cuGraphExecDestroy)        \
    X(cuGraphDestroy)            \
    X(cuLaunchKernel)            \
    X(cuLaunchKernelEx)          \
    X(cuTensorMapEncodeTiled)

/// A driver call failed. `what()` names the call's object, the CUDA error and its number.
class CudaError : public std::runtime_error {
  public:
    CudaError(const std::string& what, CUresult result) : std::runtime_error(what), result_(result) {}
    [[nodiscard]] CUresult result() const { return result_; }
    /// True for the errors after which CUDA says that the process must end (illegal address, launch failure,
    /// ...).
    [[nodiscard]] bool sticky() const;

  private:
    CUresult result_;
};
[[nodiscard]] bool is_sticky(CUresult result);

class Driver {
  public:
    /// Loads libcuda.so.1 and calls cuInit. Throws LibraryError (not found; too old: which function is
    /// missing, needs driver >= 525) or CudaError (no device, or a driver that does not start).
    [[nodiscard]] static std::shared_ptr<const Driver> load();

#define HONE_DECLARE(function) decltype(&::function) function = nullptr;
    HONE_CUDA_FUNCTIONS(HONE_DECLARE)
#undef HONE_DECLARE

    [[nodiscard]] int device_count() const;
    /// "580.159.04" as the kernel module or NVML says, else the CUDA version the driver supports, "13.0".
    [[nodiscard]] std::string version() const;
    [[nodiscard]] const std::string& library_path() const;

    /// The GPU hangs: what was made through this object stays there when its owner goes, since the driver
    /// would wait for work that never ends.
    void leave_all() const noexcept { leaves_all_ = true; }
    [[nodiscard]] bool leaves_all() const noexcept { return leaves_all_; }
    template <class Handle>
    void give_back(CUresult (*Driver::*destroying_function)(Handle), Handle handle) const noexcept {
        if (!leaves_all_) (this->*destroying_function)(handle);
    }

  private:
    Driver() = default;
    void resolve_functions();
    SharedLibrary library_;
    mutable std::atomic<bool> leaves_all_{false};
};

/// Throws CudaError when `result` is not CUDA_SUCCESS; `what` names the object concerned.
void check(const Driver& driver, CUresult result, const std::string& what,
           std::source_location where = std::source_location::current());

/// "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered"
[[nodiscard]] std::string describe(const Driver& driver, CUresult result);

/// `device` is an index below device_count(). Throw CudaError for any other.
[[nodiscard]] DeviceTraits device_traits(const Driver& driver, int device);
[[nodiscard]] cache::GpuKey gpu_key(const Driver& driver, int device);
/// "0000:1B:00.0", what NvmlDevice::open() takes.
[[nodiscard]] std::string pci_bus_id(const Driver& driver, int device);
/// What CUDA_VISIBLE_DEVICES and nvidia-smi call it: "GPU-8c6ff5f4-...".
[[nodiscard]] std::string device_uuid(const Driver& driver, int device);
/// Free memory now, of the current context's device.
[[nodiscard]] std::int64_t free_memory_bytes(const Driver& driver);

struct ModuleTraits {
    using Handle = CUmodule;
    static constexpr Handle none = nullptr;
    const Driver* driver = nullptr;
    void destroy(Handle handle) const noexcept { driver->cuModuleUnload(handle); }
};
using Module = UniqueHandle<ModuleTraits>;

/// Retains a device's primary context, the one that the CUDA runtime and PyTorch use, and makes it current on
/// this thread. Its destructor makes the thread's former context current again (when run on that thread) and
/// releases the device's.
class PrimaryContext {
  public:
    PrimaryContext(std::shared_ptr<const Driver> driver, int device);
    PrimaryContext(PrimaryContext&&) noexcept;
    PrimaryContext& operator=(PrimaryContext&&) = delete;
    ~PrimaryContext();
    [[nodiscard]] CUcontext get() const { return context_; }
    [[nodiscard]] int device() const { return device_; }

  private:
    std::shared_ptr<const Driver> driver_;
    CUcontext context_ = nullptr;
    CUcontext former_ = nullptr;
    int device_ = 0;
};

/// Makes a context current on this thread for a scope: for threads other than the PrimaryContext's own.
class CurrentContext {
  public:
    CurrentContext(const Driver& driver, CUcontext context);
    CurrentContext(const CurrentContext&) = delete;
    CurrentContext& operator=(const CurrentContext&) = delete;
    ~CurrentContext();

  private:
    const Driver& driver_;
};

}  // namespace hone::runtime
