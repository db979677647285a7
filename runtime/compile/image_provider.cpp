#include "runtime/compile/image_provider.h"

#include <fmt/format.h>

#include "runtime/compile/compiler.h"

namespace hone::runtime {
namespace {

std::string image_name(const Problem& problem, const Candidate& candidate) {
    return fmt::format("{} {}: {}", problem.family->name, static_text(problem), to_string(candidate));
}

}  // namespace

LoadedImage::LoadedImage(std::shared_ptr<const DeviceSession> session, std::span<const std::byte> cubin,
                         const Plan& plan)
    : session_(std::move(session)) {
    const CurrentContext current(session_->driver(), session_->context());
    plan_.emplace(session_->driver(), cubin, plan);
}

LoadedImage::~LoadedImage() {
    const Driver& driver = session_->driver();
    const bool pushed = driver.cuCtxPushCurrent(session_->context()) == CUDA_SUCCESS;
    plan_.reset();
    CUcontext popped = nullptr;
    if (pushed) driver.cuCtxPopCurrent(&popped);
}

ImageProvider::ImageProvider(std::shared_ptr<const DeviceSession> session, ImageOptions options)
    : session_(std::move(session)),
      options_(std::move(options)),
      nvrtc_version_(options_.nvrtc ? options_.nvrtc->version() : ""),
      arch_(session_->traits().arch()),
      cache_warned_(options_.cache_warned) {}

ImageProvider::Result ImageProvider::load(const Problem& problem, const Candidate& candidate,
                                          const std::string& measured_with) {
    if (auto image = loaded_[image_name(problem, candidate)].lock())
        return {std::move(image), ImageOrigin::shared};
    if (auto image = load_cached(problem, candidate, nvrtc_version_))
        return {std::move(image), ImageOrigin::cached};
    if (measured_with != nvrtc_version_) {
        if (auto image = load_cached(problem, candidate, measured_with))
            return {std::move(image), ImageOrigin::cached};
    }
    return {load_cubin(problem, candidate, compile_now(problem, candidate)), ImageOrigin::compiled};
}

std::shared_ptr<const LoadedImage> ImageProvider::load_cached(const Problem& problem,
                                                              const Candidate& candidate,
                                                              const std::string& nvrtc_version) {
    const std::optional<Cubin> cubin = find_cached(problem, candidate, nvrtc_version);
    if (!cubin) return nullptr;
    try {
        auto image = load_cubin(problem, candidate, *cubin);
        ++cache_hits_;
        return image;
    } catch (const CudaError& error) {
        if (error.sticky()) throw;
        options_.warn(fmt::format("the cached image of {} does not load: {}", image_name(problem, candidate),
                                  error.what()));
        return nullptr;
    }
}

std::optional<ImageProvider::Cubin> ImageProvider::find_cached(const Problem& problem,
                                                               const Candidate& candidate,
                                                               const std::string& nvrtc_version) {
    if (!options_.cache || nvrtc_version.empty()) return std::nullopt;
    try {
        auto image = options_.cache->image(candidate_image_key(problem, candidate, arch_, nvrtc_version));
        if (image) return std::move(image->cubin);
    } catch (const std::exception& error) {
        warn_about_cache(fmt::format("compiled images cannot be read from the cache: {}", error.what()));
    }
    return std::nullopt;
}

ImageProvider::Cubin ImageProvider::compile_now(const Problem& problem, const Candidate& candidate) {
    if (frozen_.load(std::memory_order_relaxed)) {
        throw FrozenError(fmt::format("{} is not in the image cache", image_name(problem, candidate)));
    }
    if (!options_.nvrtc) {
        throw CompilerMissing(fmt::format("{} has to be compiled, and NVRTC is missing: {}",
                                          image_name(problem, candidate), options_.nvrtc_problem),
                              "install NVRTC (CUDA toolkit or the Python wheel), or set HONE_NVRTC_LIBRARY");
    }
    CompiledImage compiled = compile(*options_.nvrtc, candidate_request(problem, candidate, arch_));
    ++compiles_;
    cache::Image image{std::move(compiled.cubin), compiled.resources};
    store(candidate_image_key(problem, candidate, arch_, nvrtc_version_), image);
    return std::move(image.cubin);
}

std::shared_ptr<const LoadedImage> ImageProvider::load_cubin(const Problem& problem,
                                                             const Candidate& candidate, const Cubin& cubin) {
    const Plan plan = candidate.variant->plan(problem, candidate.config, session_->traits());
    auto image = std::make_shared<const LoadedImage>(session_, cubin, plan);
    loaded_[image_name(problem, candidate)] = image;
    return image;
}

void ImageProvider::store(const cache::ImageKey& key, const cache::Image& image) {
    if (!options_.cache || !options_.cache->writable()) return;
    try {
        options_.cache->store_image(key, image);
    } catch (const std::exception& error) {
        warn_about_cache(fmt::format("compiled images cannot be kept in the cache: {}", error.what()));
    }
}

void ImageProvider::warn_about_cache(const std::string& what) {
    if (!std::exchange(cache_warned_, true)) options_.warn(what);
}

}  // namespace hone::runtime
