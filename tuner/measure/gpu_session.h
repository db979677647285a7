// A GPU measurer together with the compile pool that makes kernels for it: what `hone tune` opens. Used by
// one thread.
#pragma once

#include <memory>

#include "tuner/compile/compile_pool.h"
#include "tuner/measure/gpu_measurer.h"

namespace hone::tuner {

struct GpuSession {
    std::unique_ptr<CompilePool> images;
    std::unique_ptr<GpuMeasurer> measurer;  ///< refers to `images`; dies first
};

/// A measurer on a GPU that device_info() has told about, and a compile pool for its architecture.
/// `pool.arch` and `pool.nvrtc` are filled in here, and the device's NVRTC where it is empty. Processes start
/// when the first problem needs them. Throws LibraryError (no NVRTC).
[[nodiscard]] GpuSession open_gpu(cache::Cache& cache, DeviceInfo device,
                                  const GpuMeasurerOptions& measuring = {}, CompilePoolOptions pool = {});

}  // namespace hone::tuner
