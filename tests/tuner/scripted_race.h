// A race whose every sample is written down. The rules are fractions of two and the fastest takes 16 us, so
// that a time which is said to be equal to a limit is equal to it: 17 us is level, 18 us meets the final, 24
// us runs in the heat.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/tuner/made_up_measurer.h"
#include "tuner/search/race.h"

namespace hone::test {

[[nodiscard]] inline RaceRules exact_rules() {
    return {.heat_limit = 1.5,
            .short_us = 0,
            .heat_rounds = 4,
            .incumbent_limit = 1.5,
            .final_limit = 1.125,
            .finalists = 8,
            .rounds_at_once = 4,
            .final_rounds = 8,
            .long_replay_us = 1e12,
            .taken_place_limit = 1.25,
            .holding_band = 1.0 / 16,
            .challenge_band = 1.0 / 16,
            .doubt_limit = 1.5,
            .level_spread = 4,
            .least_power_us = 0,
            .clock_fall = 1.0 / 64};
}

/// What the measurer says when it is asked once more for a runner's times.
struct Answer {
    std::optional<std::vector<double>>
        us{};  ///< repeated as often as replays are asked for; nullopt: Runner::us
    cache::TrialStatus status = cache::TrialStatus::ok;
};

struct Runner {
    double us = 16;
    bool is_default = false;
    bool is_incumbent = false;
    int registers = 20;
    std::optional<double> known_us{};
    cache::TrialStatus verified = cache::TrialStatus::ok;
    std::vector<Answer> answers{};  ///< of the screening, the heat, each batch of the final; then `us` alone
};

/// Takes 16 us in the screening, and from then on these times in turn.
[[nodiscard]] inline Runner in_final(std::vector<double> us, int registers = 20) {
    return {.registers = registers, .answers = {{}, {.us = us}, {.us = us}, {.us = us}}};
}

class ScriptedRace final : public Measurer, public RaceObserver {
  public:
    int calls = 1;             ///< of one replay
    int stop_after = 1 << 30;  ///< launches
    int begun_anew = 0;        ///< how often the race has asked for other buffers
    bool can_begin_anew = true;
    std::vector<std::string> heard;
    std::map<std::size_t, std::vector<int>> replays;  ///< asked for, of each runner
    std::vector<std::size_t> heat;                    ///< who ran in it
    int heat_rounds = 0;
    std::vector<int> rounds;  ///< asked for after the heat, of each batch
    std::vector<std::size_t> finalists;

    explicit ScriptedRace(std::vector<Runner> runners, const RaceRules& rules = exact_rules())
        : runners_(std::move(runners)), race_(*this, *this, rules) {
        for (const RankedCandidate& ranked : ranked_space(norm_problem(1024), device_.traits)) {
            if (names_.size() == runners_.size()) break;
            names_.emplace(to_string(ranked.candidate), candidates_.size());
            candidates_.push_back(ranked.candidate);
        }
    }
    const Standing& enter(std::size_t i) {
        return race_.enter({.image = {.candidate = candidates_.at(i)},
                            .is_default = runners_[i].is_default,
                            .is_incumbent = runners_[i].is_incumbent,
                            .resources = {.registers = runners_[i].registers},
                            .known_us = runners_[i].known_us});
    }
    Decision run() {
        for (std::size_t i = 0; i < runners_.size(); ++i) enter(i);
        return race_.finish();
    }
    /// As run(), with other buffers to be had.
    Decision run_anew() {
        for (std::size_t i = 0; i < runners_.size(); ++i) enter(i);
        return race_.finish([this] { return ++begun_anew, can_begin_anew; });
    }
    std::optional<Decision> challenge() {
        return race_.challenge([this] { return ++begun_anew, can_begin_anew; });
    }
    [[nodiscard]] const Standing& standing(std::size_t i) const { return race_.standings().at(i); }

    [[nodiscard]] const DeviceInfo& device() const override { return device_; }
    [[nodiscard]] cache::Provenance provenance() const override { return cache::Provenance::measured; }
    [[nodiscard]] bool needs_images() const override { return false; }
    [[nodiscard]] Verdict begin_problem(const Problem&) override { return {}; }
    void end_problem() override {}
    [[nodiscard]] int calls_per_replay() const override { return calls; }
    [[nodiscard]] Verdict verify(const CandidateImage& image) override {
        return {.status = runners_[index_of(image.candidate)].verified, .detail = {}};
    }
    [[nodiscard]] Samples time(const CandidateImage& image, int count) override {
        const std::size_t i = index_of(image.candidate);
        replays[i].push_back(count);
        return next_samples(i, count);
    }
    [[nodiscard]] std::vector<Samples> interleave(const std::vector<CandidateImage>& images,
                                                  int count) override {
        const bool is_heat = heat_rounds == 0;
        if (is_heat) heat_rounds = count;
        if (!is_heat) rounds.push_back(count);
        std::vector<Samples> samples;
        for (const CandidateImage& image : images) {
            const std::size_t i = index_of(image.candidate);
            if (is_heat) heat.push_back(i);
            samples.push_back(next_samples(i, count));
        }
        return samples;
    }

    void about_to_launch(const Contestant& contestant) override {
        ++launches_;
        if (heat_rounds > 0) finalists.push_back(index_of(contestant.image.candidate));
        heard.push_back("launch " + std::to_string(index_of(contestant.image.candidate)));
    }
    void settled(const Standing& standing, bool winner) override {
        const std::size_t i = index_of(standing.contestant.image.candidate);
        heard.push_back(std::to_string(i) + (standing.failed() ? " failed" : "") +
                        (standing.dropped ? " dropped" : "") + " in " +
                        stage_names.at(static_cast<std::size_t>(standing.stage)) + (winner ? ", wins" : ""));
    }
    [[nodiscard]] bool stop() const override { return launches_ >= stop_after; }

  private:
    static constexpr std::array stage_names{"screening", "heat", "final"};

    [[nodiscard]] std::size_t index_of(const Candidate& candidate) const {
        return names_.at(to_string(candidate));
    }
    [[nodiscard]] Samples next_samples(std::size_t i, int count) {
        const Runner& runner = runners_[i];
        const std::size_t asked = asked_[i]++;
        const Answer answer = asked < runner.answers.size() ? runner.answers[asked] : Answer{};
        const std::vector<double> us = answer.us.value_or(std::vector<double>{runner.us});
        Samples samples{.verdict = {.status = answer.status, .detail = {}}, .us = {}};
        for (std::size_t j = 0; j < static_cast<std::size_t>(count) && !us.empty(); ++j) {
            samples.us.push_back(us[j % us.size()]);
        }
        return samples;
    }

    std::vector<Runner> runners_;
    DeviceInfo device_ = made_up_device();
    std::vector<Candidate> candidates_;
    std::map<std::string, std::size_t> names_;
    std::map<std::size_t, std::size_t> asked_;  ///< how often, of each runner
    int launches_ = 0;
    Race race_;
};

}  // namespace hone::test
