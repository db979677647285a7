#include "tuner/measure/gpu_session.h"

#include <utility>

#include "runtime/nvrtc/nvrtc.h"

namespace hone::tuner {

CompilePoolOptions pool_for(DeviceInfo& device, CompilePoolOptions pool) {
    if (device.toolchain.nvrtc.empty()) device.toolchain.nvrtc = runtime::Nvrtc::load()->version();
    pool.nvrtc = device.toolchain.nvrtc;
    pool.with_references = true;
    pool.arch = device.traits.arch();
    return pool;
}

GpuSession open_gpu(cache::Cache& cache, DeviceInfo device, const GpuMeasurerOptions& measuring,
                    CompilePoolOptions options) {
    auto pool = std::make_unique<CompilePool>(cache, pool_for(device, std::move(options)));
    GpuSession session = open_gpu(*pool, std::move(device), measuring);
    session.pool = std::move(pool);
    return session;
}

GpuSession open_gpu(CompilePool& pool, DeviceInfo device, const GpuMeasurerOptions& measuring) {
    auto images = std::make_unique<CompilePool::Share>(pool);
    auto measurer = std::make_unique<GpuMeasurer>(std::move(device), measuring);
    measurer->use_images(*images);
    return {.pool = nullptr, .images = std::move(images), .measurer = std::move(measurer)};
}

}  // namespace hone::tuner
