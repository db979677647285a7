#include "runtime/compile/image_provider.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include "runtime/compile/compile_crew.h"
#include "runtime/compile/compiler.h"
#include "runtime/workers/program.h"

namespace hone::runtime {
namespace {

/// An image takes a second or two; a machine may be busy.
constexpr std::chrono::minutes longest_compile{2};

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

void ImageProvider::ask(Visit& visit, const Problem& problem, const Candidate& candidate,
                        const std::string& measured_with) {
    if (find_loaded(problem, candidate) || has_job(visit, problem, candidate)) return;
    for (const std::string& version : versions(measured_with)) {
        const cache::ImageKey wanted = key(problem, candidate, version);
        const std::string name = key_text(wanted);
        if (visit.found_.contains(name)) return;
        if (std::optional<Cubin> cubin = find_cached(wanted)) {
            visit.found_.emplace(name, std::move(*cubin));
            return;
        }
    }
    if (options_.nvrtc && !frozen_.load(std::memory_order_relaxed)) add_job(visit, problem, candidate);
}

ImageProvider::Result ImageProvider::load(Visit& visit, const Problem& problem, const Candidate& candidate,
                                          const std::string& measured_with) {
    if (auto image = find_loaded(problem, candidate)) return {std::move(image), ImageOrigin::shared};
    if (!has_job(visit, problem, candidate)) {
        for (const std::string& version : versions(measured_with)) {
            if (auto image = load_cached(visit, problem, candidate, version))
                return {std::move(image), ImageOrigin::cached};
        }
        require_compiler(problem, candidate);
        add_job(visit, problem, candidate);
    }
    return load_compiled(visit, problem, candidate);
}

std::shared_ptr<const LoadedImage> ImageProvider::find_loaded(const Problem& problem,
                                                              const Candidate& candidate) const {
    const auto known = loaded_.find(image_name(problem, candidate));
    return known == loaded_.end() ? nullptr : known->second.lock();
}

std::shared_ptr<const LoadedImage> ImageProvider::load_cached(Visit& visit, const Problem& problem,
                                                              const Candidate& candidate,
                                                              const std::string& nvrtc_version) {
    const cache::ImageKey wanted = key(problem, candidate, nvrtc_version);
    const auto found = visit.found_.extract(key_text(wanted));
    const std::optional<Cubin> cubin = found ? std::move(found.mapped()) : find_cached(wanted);
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

std::optional<ImageProvider::Cubin> ImageProvider::find_cached(const cache::ImageKey& wanted) {
    if (!options_.cache || wanted.nvrtc.empty()) return std::nullopt;
    try {
        auto image = options_.cache->image(wanted);
        if (image) return std::move(image->cubin);
    } catch (const std::exception& error) {
        warn_about_cache(fmt::format("compiled images cannot be read from the cache: {}", error.what()));
    }
    return std::nullopt;
}

std::vector<std::string> ImageProvider::versions(const std::string& measured_with) const {
    if (measured_with == nvrtc_version_) return {nvrtc_version_};
    return {nvrtc_version_, measured_with};
}

cache::ImageKey ImageProvider::key(const Problem& problem, const Candidate& candidate,
                                   const std::string& nvrtc_version) const {
    return candidate_image_key(problem, candidate, arch_, nvrtc_version);
}

void ImageProvider::require_compiler(const Problem& problem, const Candidate& candidate) const {
    if (frozen_.load(std::memory_order_relaxed)) {
        throw FrozenError(fmt::format("{} is not in the image cache", image_name(problem, candidate)));
    }
    if (!options_.nvrtc) {
        throw CompilerMissing(fmt::format("{} has to be compiled, and NVRTC is missing: {}",
                                          image_name(problem, candidate), options_.nvrtc_problem),
                              "install NVRTC (CUDA toolkit or the Python wheel), or set HONE_NVRTC_LIBRARY");
    }
}

bool ImageProvider::has_job(const Visit& visit, const Problem& problem, const Candidate& candidate) const {
    return visit.jobs_.contains(key_text(key(problem, candidate, nvrtc_version_)));
}

void ImageProvider::add_job(Visit& visit, const Problem& problem, const Candidate& candidate) {
    if (visit.crew_ == nullptr) visit.crew_ = crew();
    const cache::ImageKey wanted = key(problem, candidate, nvrtc_version_);
    visit.jobs_[key_text(wanted)] = visit.crew_->add(wanted, candidate_request(problem, candidate, arch_));
}

std::shared_ptr<CompileCrew> ImageProvider::crew() {
    if (auto known = crew_.lock()) return known;
    auto made = std::make_shared<CompileCrew>(
        options_.nvrtc, CompilerProcessOptions{.program = without_processes_ ? std::filesystem::path()
                                                                             : dispatch_worker_program(),
                                               .nvrtc_library = options_.nvrtc->library_path(),
                                               .nvrtc_version = nvrtc_version_,
                                               .time_limit = longest_compile});
    crew_ = made;
    return made;
}

void ImageProvider::finish_job(Visit& visit, const CompileJob& wanted) {
    std::vector<CompileCrew::JobPtr> jobs;
    for (const auto& [_, job] : visit.jobs_) jobs.push_back(job);
    visit.lock_.unlock();
    visit.crew_->finish(wanted, jobs);
    visit.lock_.lock();
    const std::string trouble = visit.crew_->trouble();
    if (trouble.empty() || std::exchange(without_processes_, true)) return;
    options_.warn("images are compiled in this process, one after the other: " + trouble);
}

/// Another call, which waited for the same image, may have loaded it meanwhile.
ImageProvider::Result ImageProvider::load_compiled(Visit& visit, const Problem& problem,
                                                   const Candidate& candidate) {
    CompileJob& job = *visit.jobs_.at(key_text(key(problem, candidate, nvrtc_version_)));
    finish_job(visit, job);
    if (auto image = find_loaded(problem, candidate)) return {std::move(image), ImageOrigin::shared};
    if (job.error) std::rethrow_exception(job.error);
    if (!std::exchange(job.stored, true)) {
        ++compiles_;
        store(job);
    }
    return {load_cubin(problem, candidate, job.image.cubin), ImageOrigin::compiled};
}

std::shared_ptr<const LoadedImage> ImageProvider::load_cubin(const Problem& problem,
                                                             const Candidate& candidate, const Cubin& cubin) {
    const Plan plan = candidate.variant->plan(problem, candidate.config, session_->traits());
    auto image = std::make_shared<const LoadedImage>(session_, cubin, plan);
    loaded_[image_name(problem, candidate)] = image;
    return image;
}

void ImageProvider::store(CompileJob& job) {
    if (!options_.cache || !options_.cache->writable()) return;
    constexpr const char* not_kept = "compiled images cannot be kept in the cache: {}";
    if (job.packed.stored.empty()) return warn_about_cache(fmt::format(not_kept, "out of memory"));
    try {
        options_.cache->store_image(job.key, std::exchange(job.packed, {}));
    } catch (const std::exception& error) {
        warn_about_cache(fmt::format(not_kept, error.what()));
    }
}

void ImageProvider::warn_about_cache(const std::string& what) {
    if (!std::exchange(cache_warned_, true)) options_.warn(what);
}

}  // namespace hone::runtime
