// Machine code for candidates: loaded already, in the image cache, or compiled now and kept there. Used by
// prepare() alone: it first asks for all images that it needs, then loads them; those that are missing are
// compiled side by side, also for several prepare() calls at once, and kept and loaded while others are still
// compiled. Guarded by a mutex of the caller's, which a Visit holds but while it waits for a compiler.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cache/cache.h"
#include "hone/report.h"
#include "kernel_templates/family.h"
#include "runtime/cuda/device_session.h"
#include "runtime/cuda/launcher.h"
#include "runtime/nvrtc/nvrtc.h"

namespace hone::runtime {

class CompileCrew;
struct CompileJob;

using WarningSink = std::function<void(const std::string&)>;

/// A loaded plan that keeps its device alive and is unloaded in the device's context, on whatever thread that
/// happens.
class LoadedImage {
  public:
    /// Throws CudaError.
    LoadedImage(std::shared_ptr<const DeviceSession> session, std::span<const std::byte> cubin,
                const Plan& plan);
    LoadedImage(const LoadedImage&) = delete;
    LoadedImage& operator=(const LoadedImage&) = delete;
    ~LoadedImage();
    [[nodiscard]] const LoadedPlan& plan() const { return *plan_; }

  private:
    std::shared_ptr<const DeviceSession> session_;
    std::optional<LoadedPlan> plan_;
};

/// A compile was needed where none is allowed. `what()` names problem and candidate.
class FrozenError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A compile was needed and NVRTC is not there.
class CompilerMissing : public LibraryError {
  public:
    using LibraryError::LibraryError;
};

struct ImageOptions {
    std::shared_ptr<const Nvrtc> nvrtc;  ///< nullptr: NVRTC is missing
    std::string nvrtc_problem;           ///< why it is missing
    std::optional<cache::Cache> cache;   ///< nullopt: images are not kept
    WarningSink warn;
    bool cache_warned = false;  ///< its trouble has been told already
};

class ImageProvider {
  public:
    using Cubin = std::vector<std::byte>;
    ImageProvider(std::shared_ptr<const DeviceSession> session, ImageOptions options);

    /// One prepare() call, and what it has asked for.
    class Visit {
      public:
        explicit Visit(std::mutex& mutex) : lock_(mutex) {}

      private:
        friend class ImageProvider;
        std::shared_ptr<CompileCrew> crew_;   ///< nullptr: nothing had to be compiled yet
        std::map<std::string, Cubin> found_;  ///< in the cache, by key
        std::map<std::string, std::shared_ptr<CompileJob>> jobs_;  ///< by key
        std::unique_lock<std::mutex> lock_;                        ///< let go of before the crew is
    };

    /// Looks for the image in the cache; what is not there will be compiled together with all else that is
    /// asked for, when the first of it is loaded. `measured_with` is the NVRTC version a winner was measured
    /// with: its image serves when ours is not at hand.
    void ask(Visit& visit, const Problem& problem, const Candidate& candidate,
             const std::string& measured_with = {});

    struct Result {
        std::shared_ptr<const LoadedImage> image;
        ImageOrigin origin = ImageOrigin::compiled;
    };
    /// Also what was not asked for. Throws FrozenError, NvrtcError, CompilerMissing or CudaError (the image
    /// does not load).
    [[nodiscard]] Result load(Visit& visit, const Problem& problem, const Candidate& candidate,
                              const std::string& measured_with = {});

    void freeze() noexcept { frozen_.store(true, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t compiles() const { return compiles_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t cache_hits() const { return cache_hits_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::string nvrtc_version() const { return nvrtc_version_; }
    /// nullptr: there is none.
    [[nodiscard]] const cache::Cache* cache() const { return options_.cache ? &*options_.cache : nullptr; }

  private:
    [[nodiscard]] std::shared_ptr<const LoadedImage> find_loaded(const Problem&, const Candidate&) const;
    [[nodiscard]] std::shared_ptr<const LoadedImage> load_cached(Visit&, const Problem&, const Candidate&,
                                                                 const std::string& nvrtc_version);
    [[nodiscard]] std::optional<Cubin> find_cached(const cache::ImageKey&);
    /// The versions of NVRTC whose images may serve, best first.
    [[nodiscard]] std::vector<std::string> versions(const std::string& measured_with) const;
    [[nodiscard]] cache::ImageKey key(const Problem&, const Candidate&,
                                      const std::string& nvrtc_version) const;

    void require_compiler(const Problem&, const Candidate&) const;
    [[nodiscard]] bool has_job(const Visit&, const Problem&, const Candidate&) const;
    void add_job(Visit&, const Problem&, const Candidate&);
    [[nodiscard]] std::shared_ptr<CompileCrew> crew();
    void finish_job(Visit&, const CompileJob& wanted);
    [[nodiscard]] Result load_compiled(Visit&, const Problem&, const Candidate&);
    [[nodiscard]] std::shared_ptr<const LoadedImage> load_cubin(const Problem&, const Candidate&,
                                                                const Cubin&);
    void store(CompileJob& job);
    void warn_about_cache(const std::string& what);

    std::shared_ptr<const DeviceSession> session_;
    ImageOptions options_;
    std::string nvrtc_version_;
    Arch arch_;
    std::map<std::string, std::weak_ptr<const LoadedImage>> loaded_;  ///< by static problem and candidate
    std::weak_ptr<CompileCrew> crew_;                                 ///< of the calls that are under way
    bool without_processes_ = false;                                  ///< they have made trouble
    bool cache_warned_;
    std::atomic<bool> frozen_{false};
    std::atomic<std::uint64_t> compiles_{0};
    std::atomic<std::uint64_t> cache_hits_{0};
};

}  // namespace hone::runtime
