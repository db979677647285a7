// What the cache already knows about a workload on this GPU: finished problems, trials of interrupted runs,
// candidates that failed, winners of neighbours, and candidates that an earlier run did not survive; and what
// won according to other cache layers. Read once when a run starts, then kept up to date by the run itself.
// Used by one thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "cache/ties.h"
#include "tuner/measure/measurer.h"
#include "tuner/search/past_races.h"

namespace hone::tuner {

[[nodiscard]] cache::TuningKey tuning_key(const Problem& problem, const cache::GpuKey& gpu);

class Knowledge {
  public:
    Knowledge(const cache::Cache& cache, const DeviceInfo& device, cache::Provenance provenance);
    /// Winners and contenders of the layers below the cache: candidates to try, never results.
    void add_lower(const std::vector<cache::Trial>& trials);

    /// A stored winner that makes measuring this problem again pointless: same GPU kind, template and
    /// toolchain, its race ran to the end, and its times have a provenance as good as this run's.
    [[nodiscard]] std::optional<cache::Trial> finished_winner(const Problem& problem) const;
    /// The newest trial of the default and of the second best, for reports about a finished problem.
    [[nodiscard]] std::optional<cache::Trial> stored_default(const Problem& problem) const;
    [[nodiscard]] std::optional<cache::Trial> stored_runner_up(const Problem& problem,
                                                               const cache::Trial& winner) const;

    [[nodiscard]] cache::Ties stored_ties(const Problem& problem, const cache::Trial& winner) const;
    /// Kernels of which a trial holds here that ran in a heat: their times can be compared.
    [[nodiscard]] std::vector<MeasuredKernel> raced_kernels(const Problem& problem) const;

    /// Everything that has a time here, also of a screening.
    struct TimedKernel {
        const std::string* candidate = nullptr;  ///< its text; valid until the next learn()
        double us = 0;
    };
    [[nodiscard]] std::vector<TimedKernel> timed_kernels(const Problem& problem) const;

    /// The trial of this candidate that holds here and now (same template, toolchain and kind of
    /// measurement).
    [[nodiscard]] const cache::Trial* valid_trial(const Problem& problem, const Candidate& candidate) const;
    /// Races of other sizes and shapes, on other GPUs and with older templates, the nearest first; of equally
    /// near ones the cache's before those of lower layers.
    [[nodiscard]] std::vector<Precedent> precedents(const Problem& problem) const {
        return past_races_.nearest(problem);
    }
    [[nodiscard]] std::optional<Precedent> nearest_stored(const Problem& problem) const {
        return past_races_.nearest_stored(problem);
    }

    struct Culprit {
        cache::InFlight row;
        Candidate candidate;
    };
    /// Candidates of this problem that were on the GPU when an earlier run died.
    [[nodiscard]] std::vector<Culprit> culprits(const Problem& problem) const;

    void learn(const cache::Trial& trial);
    /// What another GPU's run told, which may have stood in the cache already.
    void learn_told(const cache::Trial& trial);

  private:
    using ProblemName = std::string;  ///< family, static and dynamic fields

    [[nodiscard]] bool is_known(const cache::Trial& trial) const;
    void remember(const cache::Trial& trial);

    DeviceInfo device_;
    cache::Provenance provenance_;
    std::vector<cache::Trial> winners_;  ///< the cache's, for all GPUs; of each key the best first
    PastRaces past_races_;
    /// Of this GPU; newest valid by candidate text.
    std::map<ProblemName, std::map<std::string, cache::Trial>> trials_;
    std::map<ProblemName, std::vector<cache::Trial>> raced_;  ///< the same, of all heats and finals
    std::vector<cache::InFlight> abandoned_;
};

/// True for ends that are not worth trying again with the same template and toolchain.
[[nodiscard]] bool is_lasting(cache::TrialStatus status);

}  // namespace hone::tuner
