#include "tuner/measure/gpu_session.h"

#include "runtime/nvrtc/nvrtc.h"

namespace hone::tuner {

GpuSession open_gpu(cache::Cache& cache, const GpuMeasurerOptions& measuring, CompilePoolOptions pool) {
    pool.nvrtc = runtime::Nvrtc::load()->version();
    auto measurer = std::make_unique<GpuMeasurer>(measuring, pool.nvrtc);
    pool.with_references = true;
    pool.arch = measurer->device().traits.arch();
    auto images = std::make_unique<CompilePool>(cache, std::move(pool));
    measurer->use_images(*images);
    return {std::move(images), std::move(measurer)};
}

}  // namespace hone::tuner
