// Where the tuner gets compiled kernels from, as interfaces: a share of a CompilePool answers both, tests
// bring their own. Used by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "kernel_templates/family.h"

namespace hone::tuner {

/// Images of candidates: from the cache, else from compile worker processes.
class ImageSource {
  public:
    struct Result {
        cache::TrialStatus status = cache::TrialStatus::ok;  ///< ok, compile_failed
        std::string detail;
        cache::Image image;
        bool from_cache = false;
        bool is_accident = false;  ///< it failed, and not by anything of its own: another run may try it
    };
    virtual ~ImageSource() = default;
    /// Whether more may be asked for in advance; false while what is at hand is too much for memory.
    [[nodiscard]] virtual bool has_room() const { return true; }
    /// Whether compilers will soon have nothing to do, so that images may be asked for that are needed much
    /// later.
    [[nodiscard]] virtual bool is_short_of_work() const { return false; }
    /// Starts compiling in the background what will be asked for in about so long; results may be asked for
    /// in any order.
    virtual void prefetch(const Problem& problem, const std::vector<Candidate>& candidates,
                          std::chrono::milliseconds until = {}) = 0;
    /// Whether all that was asked for because of this problem is there; something was.
    [[nodiscard]] virtual bool is_ready(const Problem& /*problem*/) const { return true; }
    /// Blocks until this one is there.
    [[nodiscard]] virtual Result get(const Problem& problem, const Candidate& candidate) = 0;
    /// Nothing that was asked for because of this problem alone is needed any more.
    virtual void release(const Problem& /*problem*/) {}
    [[nodiscard]] virtual std::int64_t compiled() const = 0;  ///< compiles so far, cache hits not counted
    [[nodiscard]] virtual std::chrono::nanoseconds waited() const { return {}; }  ///< in get()
};

/// Images of kernels that are no candidates; what the GPU measurer needs besides them.
class HarnessImages {
  public:
    virtual ~HarnessImages() = default;
    /// A problem will follow soon: begins to compile what harness() answers.
    virtual void prefetch_harness() {}
    /// Fill, compare and check kernels: kernel_templates/harness.
    [[nodiscard]] virtual ImageSource::Result harness() = 0;
    /// The slow and obviously right kernel of the problem's family.
    [[nodiscard]] virtual ImageSource::Result reference(const Problem& problem) = 0;
    /// Whether reference() answers without waiting.
    [[nodiscard]] virtual bool has_reference(const Problem& problem) const = 0;
};

}  // namespace hone::tuner
