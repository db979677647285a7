// A GPU measurer together with its share of the compile pool that makes kernels for it: what `hone tune`
// opens. Used by one thread.
#pragma once

#include <memory>

#include "tuner/compile/compile_pool.h"
#include "tuner/measure/gpu_measurer.h"

namespace hone::tuner {

struct GpuSession {
    std::unique_ptr<CompilePool> pool;  ///< nothing where it is another's
    std::unique_ptr<CompilePool::Share> images;
    std::unique_ptr<GpuMeasurer> measurer;  ///< refers to `images`; dies first
};

/// A measurer on a GPU that device_info() has told about, and a compile pool for its architecture.
/// `pool.arch` and `pool.nvrtc` are filled in here, and the device's NVRTC where it is empty. Processes start
/// when the first problem needs them. Throws LibraryError (no NVRTC).
[[nodiscard]] GpuSession open_gpu(cache::Cache& cache, DeviceInfo device,
                                  const GpuMeasurerOptions& measuring = {}, CompilePoolOptions pool = {});

/// `pool` for measurers on GPUs like this one; fills in the device's NVRTC where it is empty. Throws
/// LibraryError (no NVRTC).
[[nodiscard]] CompilePoolOptions pool_for(DeviceInfo& device, CompilePoolOptions pool = {});

/// With a pool that several GPUs of one kind have together, made as pool_for() says; it outlives the session.
/// The device's NVRTC is known.
[[nodiscard]] GpuSession open_gpu(CompilePool& pool, DeviceInfo device,
                                  const GpuMeasurerOptions& measuring = {});

}  // namespace hone::tuner
