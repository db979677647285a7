// The race of one problem's candidates: right before fast, few replays for the hopeless, more for the close,
// interleaved rounds for the last few, then a choice that two cold runs make alike. Pure over Measurer: it
// stores nothing and knows no cache. docs/how-we-measure.md has the rules and their reasons. Used by one
// thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cache/ties.h"
#include "tuner/measure/measurer.h"

namespace hone::tuner {

struct RaceRules {
    int screening_replays = 3;
    double heat_limit = 1.12;        ///< times the best screening: who is slower does not run in the heat
    double short_heat_limit = 1.24;  ///< the same where the best takes less than `short_us`
    double short_us = 8;
    std::size_t heat_seats = 48;
    int heat_rounds = 10;
    double incumbent_limit = 1.5;  ///< as heat_limit, for the incumbent: being screened first is no advantage
    double final_limit = 1.02;     ///< times the best of the heat: who meets in the final
    std::size_t finalists = 5;
    std::size_t fastest_seats = 3;  ///< finalists by time; the other seats go by rank to who may win
    int rounds_at_once = 10;
    int final_rounds = 20;  ///< after those of the heat
    /// Of the best: a replay that takes longer is the mean of enough by itself.
    double long_replay_us = 1000;
    int long_screening_replays = 1;
    int long_heat_rounds = 5;
    double heat_us = 500'000;   ///< heats and finals of slow kernels have fewer rounds, so that they take
    double final_us = 500'000;  ///< no longer than this
    double taken_place_limit = 1.08;         ///< final_limit for an incumbent that is to lose its place
    double holding_band = cache::tie_limit;  ///< the first by rank that is beaten by no more than this wins
    double challenge_band = cache::held_limit;  ///< the same for an incumbent that has won a race before
    /// Times the fastest: who is further behind is beaten, however unsure that is.
    double doubt_limit = 1.025;
    /// Of the fastest's slowest tenth over its fastest: it takes one of several times.
    double level_spread = 1.04;
    double least_power_us = 20;      ///< of the best: power does not limit the clock of shorter calls
    double clock_fall = 0.02;        ///< by which a heat slows down where power limits the clock
    double prediction_band = 0.002;  ///< whose prediction is further behind is not compiled to be sure
};

struct Contestant {
    CandidateImage image;
    bool is_default = false;
    bool is_incumbent = false;
    cache::Resources resources;
    /// Median of an interrupted run's trial on the same GPU, toolchain and template: when it is far behind,
    /// it is not measured again.
    std::optional<double> known_us;
};

/// How far a contestant has come.
struct Standing {
    Contestant contestant;
    Verdict verdict;
    cache::Stage stage = cache::Stage::screened;
    std::vector<double> us;  ///< times of its latest stage
    double energy_mj = 0;
    int sm_clock_mhz = 0;        ///< when the latest of them ended; 0: not known
    double incumbent_ratio = 0;  ///< as in cache::Timing
    bool launched = false;       ///< in this race
    bool dropped = false;        ///< failed or too slow

    [[nodiscard]] bool failed() const { return verdict.status != cache::TrialStatus::ok; }
    /// A call, the trimmed mean of its latest stage; infinity where nothing is known.
    [[nodiscard]] double typical_us() const;
};

/// Told what happens, so that nothing is lost when the process dies.
class RaceObserver {
  public:
    virtual ~RaceObserver() = default;
    virtual void about_to_launch(const Contestant& contestant) = 0;
    /// A stage has ended for this contestant. Called for the finalists after the decision.
    virtual void settled(const Standing& standing, bool winner) = 0;
    [[nodiscard]] virtual bool stop() const = 0;
};

struct Decision {
    std::optional<std::size_t> winner;  ///< index into standings()
    std::optional<std::size_t> runner_up;
    bool complete = false;  ///< false: stopped before the final, chosen from what was known
};

class Race {
  public:
    Race(Measurer& measurer, RaceObserver& observer, RaceRules rules = {});

    /// Verifies and screens.
    const Standing& enter(Contestant contestant);
    /// Whether a candidate that takes at least so long loses to what has been screened, ties aside.
    [[nodiscard]] bool is_lost_at(double least_us) const {
        return least_us > (1 + rules_.prediction_band) * best_us();
    }
    /// The best typical time so far; infinity before there is one.
    [[nodiscard]] double best_us() const;
    /// Replays everyone who is close enough in interleaved rounds. A part of finish().
    void heat();
    /// Heat, final, decision. Where the incumbent would lose its place, the final is run after `begin_anew`,
    /// if there is one: it gives the problem other buffers and says whether it could. The heat's rounds
    /// count, too.
    Decision finish(const std::function<bool()>& begin_anew = {});
    /// The same for an incumbent that has won a race before: nothing where it keeps its place; then nobody is
    /// said to win. It has to be beaten twice: in the heat, and in a final of its own rounds after
    /// `begin_anew`.
    std::optional<Decision> challenge(const std::function<bool()>& begin_anew);
    [[nodiscard]] const std::vector<Standing>& standings() const { return standings_; }

  private:
    void screen(Standing& standing);
    static void take(Standing& standing, const Samples& samples);
    void compare_with_incumbent(const std::vector<std::size_t>& racing);
    [[nodiscard]] double heat_limit() const;
    [[nodiscard]] bool replays_are_long() const;
    [[nodiscard]] bool has_slowed_down(const std::vector<std::size_t>& racing) const;
    [[nodiscard]] int affordable(double budget_us, const std::vector<std::size_t>& racing, int wanted) const;
    void run_rounds(const std::vector<std::size_t>& racing, int rounds);
    void keep_screening(const std::vector<std::size_t>& racing,
                        const std::vector<std::vector<double>>& screened);
    [[nodiscard]] std::vector<std::size_t> choose_finalists() const;
    void run_final(const std::vector<std::size_t>& finalists);
    [[nodiscard]] std::optional<std::size_t> holder(const std::vector<std::size_t>& racing) const;
    [[nodiscard]] bool holds(const Standing& standing, const Standing& fastest) const;
    [[nodiscard]] double band_of(const Standing& standing) const;
    [[nodiscard]] std::pair<int, std::size_t> rank(std::size_t i) const;
    [[nodiscard]] std::vector<std::size_t> by_rank(std::vector<std::size_t> indices) const;
    [[nodiscard]] std::vector<std::size_t> with_times(const std::vector<std::size_t>& finalists) const;
    [[nodiscard]] bool undecided(const std::vector<std::size_t>& finalists) const;
    [[nodiscard]] Decision decide(const std::vector<std::size_t>& finalists) const;
    [[nodiscard]] Decision decide_early() const;
    [[nodiscard]] bool keeps_place(const Decision& decision) const;
    [[nodiscard]] bool loses_place(const Decision& decision) const;
    void tell(const Decision& decision, const std::vector<std::size_t>& finalists);
    [[nodiscard]] std::vector<std::size_t> running() const;
    [[nodiscard]] std::vector<std::size_t> by_time(std::vector<std::size_t> indices) const;
    void drop_slower_than(double factor);

    Measurer& measurer_;
    RaceObserver& observer_;
    RaceRules rules_;
    std::vector<Standing> standings_;
    bool is_challenge_ = false;  ///< the incumbent has won a race before
    bool is_anew_ = false;       ///< the final has other buffers than the heat
    bool clock_fell_ = false;    ///< during the heat
};

}  // namespace hone::tuner
