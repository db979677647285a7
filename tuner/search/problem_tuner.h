// One problem's tuning: candidates in order, images as they come, prune, race, store. Everything that is
// known is committed before the next candidate starts. Used by one thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "tuner/search/asked_images.h"
#include "tuner/search/candidate_list.h"
#include "tuner/search/knowledge.h"
#include "tuner/search/predictions.h"
#include "tuner/search/race.h"
#include "tuner/search/tuner.h"

namespace hone::tuner {

/// What the problems of one run share.
struct RunContext {
    const TuneOptions& options;
    Measurer& measurer;
    ImageSource& images;
    cache::Cache& cache;
    Knowledge& knowledge;
    Predictions& predictions;
    AskedImages& asked;
    std::function<bool()> stop;                          ///< budget used up, or interrupted
    std::function<void(double best_us)> candidate_done;  ///< for the progress bar
    std::int64_t latest_batch_ms = 0;                    ///< no two heats or finals of a run have one time
    std::function<void(const cache::Trial&)> tell = {};  ///< what was stored, to who tunes side by side
};

/// The candidate of the best prediction as a winner that nothing was compiled for; nothing where only
/// measuring tells.
[[nodiscard]] std::optional<cache::Trial> predicted_answer(const Problem& problem, const RunContext& run);

class ProblemTuner final : public RaceObserver {
  public:
    ProblemTuner(const Problem& problem, CandidateList candidates, RunContext& run);

    [[nodiscard]] ProblemResult run();
    /// The incumbent has won before: nothing where none of the others takes its place.
    [[nodiscard]] std::optional<ProblemResult> challenge();
    /// Times all candidates in one heat, however slow they are, and stores that; nobody wins.
    void time_all();
    [[nodiscard]] std::int64_t launched() const { return launched_; }
    [[nodiscard]] int tried() const { return result_.candidates; }
    [[nodiscard]] int failed() const { return result_.failed; }

  private:
    void about_to_launch(const Contestant& contestant) override;
    void settled(const Standing& standing, bool winner) override;
    [[nodiscard]] bool stop() const override { return run_.stop(); }

    [[nodiscard]] bool is_looked_at_again() const;
    [[nodiscard]] bool begin_anew();
    void enter_all(Race& race);
    void try_candidate(Race& race, const Candidate& candidate);
    [[nodiscard]] bool known_to_fail(const Candidate& candidate);
    [[nodiscard]] bool known_to_lose(const Race& race, const Candidate& candidate) const;
    [[nodiscard]] std::optional<Contestant> contestant(const Candidate& candidate);
    [[nodiscard]] Verdict prune(const Candidate& candidate, const cache::Resources& resources) const;
    void set_aside(const Candidate& candidate, const std::string& why);
    void reject(const Candidate& candidate, const Verdict& verdict, const cache::Resources& resources);
    void store(cache::Trial trial);
    [[nodiscard]] cache::Trial trial_of(const Candidate& candidate) const;
    [[nodiscard]] bool is_default(const Candidate& candidate) const {
        return candidates_.fallback == candidate;
    }
    [[nodiscard]] std::int64_t batch_time(cache::Stage stage);
    void end_in_flight(const std::string& candidate);
    void conclude(const Race& race, const Decision& decision);

    const Problem problem_;
    const CandidateList candidates_;
    RunContext& run_;
    cache::TuningKey key_;
    std::deque<cache::Image> images_;  ///< the contestants'; their addresses are stable
    std::map<std::string, cache::InFlight> in_flight_;
    std::map<std::string, cache::Trial> latest_;       ///< by candidate text
    std::map<std::string, cache::InFlight> culprits_;  ///< rows of earlier runs
    ProblemResult result_;
    std::string first_failure_;
    /// When the trials of the heat, or of the final, were stored: all have one time, by which they are known
    /// to have run side by side.
    std::map<cache::Stage, std::int64_t> batch_at_;
    std::int64_t launched_ = 0;
};

}  // namespace hone::tuner
