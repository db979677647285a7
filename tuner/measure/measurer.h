// Measuring as an interface with three sides: the GPU (a worker process), a replay of recorded sweeps, and
// offline (the cost model). The race above it does not know which one answers. Used by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "kernel_templates/family.h"

namespace hone::tuner {

struct DeviceInfo {
    DeviceTraits traits;
    cache::GpuKey gpu;
    cache::Toolchain toolchain;
    int ordinal = 0;
    std::string uuid;  ///< where a process sees several GPUs: opening the driver for one alone is quicker
};

/// How a candidate fared in one step. Anything but `ok` ends it.
struct Verdict {
    cache::TrialStatus status = cache::TrialStatus::ok;
    std::string detail;      ///< empty when ok; else the cause in one sentence
    double relative_l2 = 0;  ///< against the reference, largest over the outputs
};

struct Samples {
    Verdict verdict;
    std::vector<double> us;  ///< microseconds a call, one entry a graph replay, disturbed ones left out
    double energy_mj = 0;    ///< a call; 0: not measured
    int sm_clock_mhz = 0;    ///< of the multiprocessors, when the last replay had ended; 0: not known
};

/// A candidate that ran without pause on an otherwise idle GPU.
struct Sustained {
    Verdict verdict;
    double us = 0;         ///< a call, with what lies between calls
    double power_w = 0;    ///< mean, of the whole GPU; 0: not measured
    bool counted = false;  ///< by the GPU's energy counter; false: mean of NVML's power readings
    double seconds = 0;    ///< measured so long, after warming up
    std::int64_t calls = 0;

    /// A call; means what Samples::energy_mj does.
    [[nodiscard]] double energy_mj() const { return power_w * us * 1e-3; }
};

struct CandidateImage {
    Candidate candidate;
    const cache::Image* image = nullptr;  ///< not owned; null for replay and offline
};

class Measurer {
  public:
    virtual ~Measurer() = default;

    [[nodiscard]] virtual const DeviceInfo& device() const = 0;
    [[nodiscard]] virtual cache::Provenance provenance() const = 0;
    /// Replay and offline need no images, and so no compiler.
    [[nodiscard]] virtual bool needs_images() const = 0;

    /// A problem will follow soon: what takes time before the first one begins.
    virtual void get_ready() {}
    /// The next one to begin: what can be done for it while others go on.
    virtual void expect_problem(const Problem&) {}
    /// Allocates and fills the rotating input sets and runs the reference. A failure (out of memory,
    /// reference does not compile) ends the problem, not the run.
    [[nodiscard]] virtual Verdict begin_problem(const Problem& problem) = 0;
    /// NaN-filled outputs, guard zones, fresh inputs, whole-output comparison, ten launches that must agree.
    [[nodiscard]] virtual Verdict verify(const CandidateImage& candidate) = 0;
    /// `replays` graph replays of one call on every input set.
    [[nodiscard]] virtual Samples time(const CandidateImage& candidate, int replays) = 0;
    /// `rounds` rounds in which every candidate is replayed once, starting with another one each round.
    [[nodiscard]] virtual std::vector<Samples> interleave(const std::vector<CandidateImage>& candidates,
                                                          int rounds) = 0;
    virtual void end_problem() = 0;

    /// How long the GPU's worker has been at work for this measurer; zero where there is none.
    [[nodiscard]] virtual std::chrono::nanoseconds busy() const { return {}; }
    /// How many calls one replay of the current problem makes.
    [[nodiscard]] virtual int calls_per_replay() const { return 1; }
    /// False when this measurer can never answer for the candidate (a replay that has no record of it).
    [[nodiscard]] virtual bool can_measure(const Problem&, const Candidate&) const { return true; }
    /// A time that the candidate of the problem cannot beat, known before it has an image; nothing where only
    /// a measurement tells.
    [[nodiscard]] virtual std::optional<double> least_us(const Problem&, const Candidate&) const {
        return std::nullopt;
    }
    /// What is known of a candidate's resources without an image.
    [[nodiscard]] virtual std::optional<cache::Resources> resources_of(const Candidate&) const {
        return std::nullopt;
    }
    /// A candidate of the current problem that ended before it could be measured (compile failed, over
    /// limits).
    virtual void note_rejected(const Candidate&, const Verdict&, const cache::Resources&) {}
};

}  // namespace hone::tuner
