#include "tuner/measure/gpu_session.h"

#include <utility>

#include "runtime/nvrtc/nvrtc.h"

namespace hone::tuner {

GpuSession open_gpu(cache::Cache& cache, DeviceInfo device, const GpuMeasurerOptions& measuring,
                    CompilePoolOptions pool) {
    pool.nvrtc = device.toolchain.nvrtc.empty() ? runtime::Nvrtc::load()->version() : device.toolchain.nvrtc;
    pool.with_references = true;
    pool.arch = device.traits.arch();
    device.toolchain.nvrtc = pool.nvrtc;
    auto measurer = std::make_unique<GpuMeasurer>(std::move(device), measuring);
    auto images = std::make_unique<CompilePool>(cache, std::move(pool));
    measurer->use_images(*images);
    return {std::move(images), std::move(measurer)};
}

}  // namespace hone::tuner
