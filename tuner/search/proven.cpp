#include "tuner/search/proven.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "kernel_templates/calibration.h"
#include "kernel_templates/kin.h"
#include "kernel_templates/space.h"
#include "tuner/search/problem_tuner.h"

namespace hone::tuner {
namespace {

constexpr std::size_t most_of_races = 6;  // that came close, the winner among them
constexpr std::size_t neighbours_of_tunable = 2;
constexpr std::size_t best_of_variant = 4;
/// Times the winner's time alone: in a step kernels have gained 8 % that were 5 % slower alone.
constexpr double slowest = 1.2;

/// Candidates of one problem, each once, those that may run here.
class Wanted {
  public:
    Wanted(const Problem& problem, const DeviceTraits& traits) : problem_(problem), traits_(traits) {}

    void add(const Candidate& candidate) {
        if (std::ranges::find(list_, candidate) == list_.end() && allowed(problem_, candidate, traits_))
            list_.push_back(candidate);
    }
    /// Of each tunable the other values that are predicted best.
    void add_neighbours(const Candidate& winner) {
        for (std::size_t i = 0; i < winner.variant->tunables.size(); ++i) {
            std::vector<RankedCandidate> others;
            for (const Candidate& other : with_other_values(problem_, winner, i, traits_))
                others.push_back({other, predicted_us(problem_, other, traits_)});
            std::ranges::stable_sort(others, {}, &RankedCandidate::predicted_us);
            for (std::size_t k = 0; k < std::min(others.size(), neighbours_of_tunable); ++k)
                add(others[k].candidate);
        }
    }
    /// Of each variant those that are predicted best: where all kernels of a step are alike, others are fast.
    void add_best_of_variants() {
        std::map<const Variant*, std::size_t> added;
        const std::vector<RankedCandidate> ranked = ranked_space(problem_, traits_);
        for (const RankedCandidate& one : ranked) {
            if (one.predicted_us > slowest * ranked.front().predicted_us) return;
            if (added[one.candidate.variant]++ < best_of_variant) add(one.candidate);
        }
    }
    [[nodiscard]] const std::vector<Candidate>& list() const { return list_; }

  private:
    const Problem& problem_;
    const DeviceTraits& traits_;
    std::vector<Candidate> list_;
};

std::vector<Candidate> wanted(const Led& led, const std::vector<Led>& others, const RunContext& run) {
    Wanted wanted(led.problem, run.measurer.device().traits);
    wanted.add(led.leader);
    wanted.add(led.had);
    for (const MeasuredKernel& kernel : shortlist(run.knowledge.raced_kernels(led.problem), most_of_races))
        wanted.add(kernel.candidate);
    for (const Led& other : others) {
        if (other.problem.family == led.problem.family) wanted.add(other.leader);
    }
    const std::vector<Problem> line = with_kin(led.problem);
    if (line.size() > 1) {
        for (const MeasuredKernel& kernel : shortlist(run.knowledge.raced_kernels(line[1]), most_of_races)) {
            if (const std::optional<Candidate> ours = from_kin(std::span(line).first(2), kernel.candidate))
                wanted.add(*ours);
        }
    }
    wanted.add_neighbours(led.leader);
    wanted.add_best_of_variants();
    return wanted.list();
}

/// Those that have no time here yet, which is measured.
void time_untried(const Problem& problem, const std::vector<Candidate>& candidates, RunContext& run) {
    CandidateList list{
        .order = {}, .fallback = fallback(problem, run.measurer.device().traits), .incumbent = {}};
    for (const Candidate& candidate : candidates) {
        if (run.knowledge.valid_trial(problem, candidate) == nullptr) list.order.push_back(candidate);
    }
    if (list.order.empty()) return;
    ProblemTuner(problem, std::move(list), run).time_all();
}

std::vector<cache::Trial> close_ones(const Problem& problem, const std::vector<Candidate>& candidates,
                                     const Knowledge& knowledge) {
    std::vector<cache::Trial> trials;
    for (const Candidate& candidate : candidates) {
        const cache::Trial* const trial = knowledge.valid_trial(problem, candidate);
        if (trial != nullptr && trial->status == cache::TrialStatus::ok) trials.push_back(*trial);
    }
    if (trials.empty()) return trials;
    std::ranges::sort(trials, {}, [](const cache::Trial& trial) { return trial.timing.median_us; });
    const double limit = slowest * trials.front().timing.median_us;
    std::erase_if(trials, [&](const cache::Trial& trial) { return trial.timing.median_us > limit; });
    return trials;
}

}  // namespace

std::vector<Proven> prove(const std::vector<Led>& problems, Measurer& measurer, ImageSource& images,
                          cache::Cache& cache, const std::function<bool()>& stop) {
    const TuneOptions options;
    Knowledge knowledge(cache, measurer.device(), measurer.provenance());
    Predictions predictions(measurer.device().traits);
    AskedImages asked(measurer.device().traits.arch());
    RunContext run{options, measurer, images, cache, knowledge, predictions, asked, stop, [](double) {}};
    std::vector<std::vector<Candidate>> lists;
    for (const Led& led : problems) {
        lists.push_back(wanted(led, problems, run));
        if (measurer.needs_images()) images.prefetch(led.problem, lists.back());
    }
    std::vector<Proven> proven;
    for (std::size_t i = 0; i < problems.size(); ++i) {
        const Problem& problem = problems[i].problem;
        if (!stop()) time_untried(problem, lists[i], run);
        proven.push_back({problem, close_ones(problem, lists[i], knowledge)});
    }
    return proven;
}

}  // namespace hone::tuner
