#include "tuner/search/candidate_list.h"

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <utility>

#include "kernel_templates/space.h"
#include "tuner/search/problem_tuner.h"

namespace hone::tuner {
namespace {

/// How many candidates come from where.
struct Portions {
    std::size_t nearest_race = 0;    ///< from the shortlist of the nearest race
    std::size_t other_gpus = 0;      ///< from that of each other GPU's race of this very problem
    std::size_t other_shape = 0;     ///< from that of the nearest race of another shape
    std::size_t winners_of_run = 0;  ///< other sizes' winners in this run
    std::size_t winners = 0;         ///< the nearest winners of the same shape, whoever measured them
    PredictionShare predictions;
    /// Of all these, but for the first of a variant and those whose image other sizes have asked for.
    std::size_t most = SIZE_MAX;
};

/// Whether a race has kernels enough for a shortlist: a winner alone is none.
bool has_shortlist(const PastRace& race) {
    constexpr std::size_t enough_kernels = 4;
    return race.kernels.size() >= enough_kernels;
}

/// A race of this very problem, with a shortlist.
bool is_known(const Precedent& nearest) {
    return nearest.same_shape && nearest.doublings == 0 && nearest.race->is_current() &&
           has_shortlist(*nearest.race);
}

/// The kernels of a race at these very sizes say nearly all; those of other sizes or shapes leave a part to
/// predictions. docs/how-we-measure.md has the figures behind the numbers.
Portions quick_portions(const std::optional<Precedent>& nearest) {
    if (!nearest) return {.winners_of_run = 4, .predictions = {16, 2}, .most = 12};
    if (!nearest->same_shape) {
        return {.nearest_race = 4, .other_shape = 4, .winners_of_run = 4, .predictions = {8, 1}, .most = 12};
    }
    if (is_known(*nearest) && nearest->same_gpu)
        return {.nearest_race = 8, .winners_of_run = 2, .predictions = {2, 1, 1.1}, .most = 5};
    // Another GPU's kernels fill nine places with the default; predictions know this GPU, and have two more.
    if (is_known(*nearest)) {
        return {.nearest_race = 8,
                .winners_of_run = 2,
                .predictions =
                    {.best = 4, .of_each_variant = 2, .variant_limit = 1.25, .pool = 16, .variant_pool = 8},
                .most = 11};
    }
    return {.nearest_race = 8, .winners_of_run = 4, .predictions = {8, 1}, .most = 12};
}

/// `nearest` of the races that were stored.
Portions portions(Effort effort, const std::optional<Precedent>& nearest) {
    switch (effort) {
        case Effort::quick: return quick_portions(nearest);
        case Effort::known: return {.winners = 2};
        case Effort::standard:
        case Effort::exhaustive: break;
    }
    return {.nearest_race = 8,
            .other_gpus = 8,
            .winners = 8,
            .predictions = {effort == Effort::standard ? 128 : SIZE_MAX, 8}};
}

/// Adds candidates, each once, those that may run here.
class Wanted {
  public:
    Wanted(const Problem& problem, const DeviceTraits& traits) : problem_(problem), traits_(traits) {}

    void add(const Candidate& candidate) {
        if (std::ranges::find(list_, candidate) == list_.end()) list_.push_back(candidate);
    }
    /// Says how many that were.
    std::size_t add_shortlist(const Precedent& precedent, std::size_t limit) {
        std::vector<MeasuredKernel> usable = precedent.race->kernels;
        std::erase_if(usable, [&](const MeasuredKernel& kernel) {
            return !allowed(problem_, kernel.candidate, traits_);
        });
        const std::vector<MeasuredKernel> chosen = shortlist(usable, limit);
        for (const MeasuredKernel& kernel : chosen) add(kernel.candidate);
        return chosen.size();
    }
    template <class Filter>
    void add_winners(const std::vector<Precedent>& near, std::size_t limit, Filter filter) {
        std::vector<Candidate> taken;
        for (const Precedent& precedent : near) {
            const Candidate& winner = precedent.race->kernels.front().candidate;
            if (taken.size() == limit) return;
            if (!precedent.same_shape || !filter(precedent)) continue;
            if (std::ranges::find(taken, winner) != taken.end() || !allowed(problem_, winner, traits_))
                continue;
            taken.push_back(winner);
            add(winner);
        }
    }
    [[nodiscard]] const std::vector<Candidate>& list() const { return list_; }

  private:
    const Problem& problem_;
    const DeviceTraits& traits_;
    std::vector<Candidate> list_;
};

/// The nearest race of a shape that is neither the problem's nor that of `first`.
const Precedent* second_shape(const std::vector<Precedent>& near, const Precedent& first) {
    const auto found = std::ranges::find_if(near, [&](const Precedent& precedent) {
        return !precedent.same_shape && precedent.race->shape != first.race->shape;
    });
    return found == near.end() ? nullptr : &*found;
}

/// The nearest race's kernels. Where it has no shortlist, as what was chosen in a model's step once was
/// stored, its places go to the next races of the shape.
void add_nearest(const std::vector<Precedent>& stored, std::size_t limit, Wanted& wanted) {
    constexpr std::size_t of_another_size = 4;
    if (stored.empty()) return;
    std::size_t left = limit - wanted.add_shortlist(stored.front(), limit);
    if (has_shortlist(*stored.front().race)) return;
    for (const Precedent& next : stored | std::views::drop(1)) {
        if (!next.same_shape || left == 0) return;
        left -= wanted.add_shortlist(next, std::min(left, of_another_size));
    }
}

/// What other GPUs raced of this very problem, so that a sweep can say what their races are worth here.
void add_other_gpus(const std::vector<Precedent>& stored, std::size_t limit, Wanted& wanted) {
    for (const Precedent& precedent : stored)
        if (limit > 0 && precedent.same_problem) wanted.add_shortlist(precedent, limit);
}

void add_measured(const std::vector<Precedent>& near, const std::vector<Precedent>& stored,
                  const Portions& portions, Wanted& wanted) {
    add_nearest(stored, portions.nearest_race, wanted);
    add_other_gpus(stored, portions.other_gpus, wanted);
    if (const Precedent* other = portions.other_shape > 0 ? second_shape(stored, stored.front()) : nullptr)
        wanted.add_shortlist(*other, portions.other_shape);
    wanted.add_winners(near, portions.winners, [](const Precedent&) { return true; });
    wanted.add_winners(near, portions.winners_of_run,
                       [](const Precedent& precedent) { return precedent.race->of_this_run; });
}

/// What a list begins with.
Wanted wanted_first(const Problem& problem, const DeviceTraits& traits, const CandidateList& list,
                    const Portions& from) {
    Wanted wanted(problem, traits);
    if (list.fallback) wanted.add(*list.fallback);
    if (list.incumbent && from.nearest_race > 0) wanted.add(*list.incumbent);
    return wanted;
}

/// Those that were known before this run.
std::vector<Precedent> stored_ones(std::vector<Precedent> precedents) {
    std::erase_if(precedents, [](const Precedent& precedent) { return precedent.race->of_this_run; });
    return precedents;
}

std::optional<Precedent> first_of(const std::vector<Precedent>& stored) {
    return stored.empty() ? std::nullopt : std::optional(stored.front());
}

/// The winner of the nearest race that was known before this run, so that two runs hold on to the same
/// kernel.
std::optional<Candidate> incumbent_of(const std::vector<Precedent>& stored, const Problem& problem,
                                      const DeviceTraits& traits) {
    for (const Precedent& precedent : stored) {
        const Candidate& winner = precedent.race->kernels.front().candidate;
        if (allowed(problem, winner, traits)) return winner;
    }
    return std::nullopt;
}

/// Winners of this run go behind all that another run would list, too: of those that are level in a race the
/// first wins, and may not depend on which problems a run has had before.
void put_in_fixed_order(const std::vector<Candidate>& fixed, std::vector<Candidate>& order) {
    std::vector<std::pair<std::ptrdiff_t, Candidate>> placed;
    for (const Candidate& candidate : order)
        placed.emplace_back(std::ranges::find(fixed, candidate) - fixed.begin(), candidate);
    std::ranges::stable_sort(placed, {}, &std::pair<std::ptrdiff_t, Candidate>::first);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = placed[i].second;
}

}  // namespace

void prepare_list(const Problem& problem, std::size_t place, const RunContext& run) {
    const Portions from = portions(run.options.effort, run.knowledge.nearest_stored(problem));
    run.predictions.prefetch(problem, from.predictions, place);
}

std::size_t expected_candidates(const Problem& problem, const RunContext& run) {
    constexpr std::size_t most_predictions = 2000;
    const Portions from = portions(run.options.effort, run.knowledge.nearest_stored(problem));
    if (from.most < SIZE_MAX) return from.most;
    return 1 + from.winners + std::min(from.predictions.best, most_predictions);
}

bool was_raced(const Problem& problem, const RunContext& run) {
    const std::optional<Precedent> nearest = run.knowledge.nearest_stored(problem);
    return nearest && is_known(*nearest);
}

bool was_raced_here(const Problem& problem, const RunContext& run) {
    const std::optional<Precedent> nearest = run.knowledge.nearest_stored(problem);
    return nearest && is_known(*nearest) && nearest->same_gpu;
}

CandidateList list_candidates(const Problem& problem, const RunContext& run) {
    const DeviceTraits& traits = run.measurer.device().traits;
    const std::vector<Precedent> near = run.knowledge.precedents(problem);
    const std::vector<Precedent> stored = stored_ones(near);
    CandidateList list{.order = {},
                       .fallback = fallback(problem, traits),
                       .incumbent = incumbent_of(stored, problem, traits)};
    const Portions from = portions(run.options.effort, first_of(stored));
    const std::vector<Candidate> predicted = run.predictions.get(problem, from.predictions);
    const auto wanted_from = [&](const std::vector<Precedent>& races) {
        Wanted wanted = wanted_first(problem, traits, list, from);
        add_measured(races, stored, from, wanted);
        for (const Candidate& candidate : predicted) wanted.add(candidate);
        return wanted;
    };
    const Wanted wanted = wanted_from(near);

    std::vector<Candidate> last;
    for (const Knowledge::Culprit& culprit : run.knowledge.culprits(problem)) {
        const bool is_new = std::ranges::find(last, culprit.candidate) == last.end();
        if (is_new && allowed(problem, culprit.candidate, traits)) last.push_back(culprit.candidate);
    }
    for (const Candidate& candidate : wanted.list()) {
        const bool can_be_measured = run.measurer.can_measure(problem, candidate);
        const bool is_first_of_variant =
            std::ranges::find(list.order, candidate.variant, &Candidate::variant) == list.order.end();
        const bool has_room =
            list.order.size() < from.most || is_first_of_variant || run.asked.has(problem, candidate);
        if (can_be_measured && has_room && std::ranges::find(last, candidate) == last.end())
            list.order.push_back(candidate);
    }
    put_in_fixed_order(wanted_from(stored).list(), list.order);
    list.first_culprit = list.order.size();
    list.order.insert(list.order.end(), last.begin(), last.end());
    return list;
}

std::vector<Candidate> known_candidates(const Problem& problem, const RunContext& run) {
    const DeviceTraits& traits = run.measurer.device().traits;
    const std::vector<Precedent> stored = stored_ones(run.knowledge.precedents(problem));
    const CandidateList list{.order = {},
                             .fallback = fallback(problem, traits),
                             .incumbent = incumbent_of(stored, problem, traits)};
    const Portions from = portions(run.options.effort, first_of(stored));
    Wanted wanted = wanted_first(problem, traits, list, from);
    add_measured(stored, stored, from, wanted);
    std::vector<Candidate> known = wanted.list();
    if (known.size() > from.most)
        known.erase(known.begin() + static_cast<std::ptrdiff_t>(from.most), known.end());
    return known;
}

std::optional<Predicted> best_predicted(const Problem& problem, const CandidateList& candidates,
                                        const Measurer& measurer) {
    std::optional<Predicted> best;
    for (const Candidate& candidate : candidates.order) {
        const std::optional<double> us = measurer.least_us(problem, candidate);
        if (us && (!best || *us < best->us)) best = {candidate, *us};
    }
    return best;
}

std::vector<Candidate> surely_tried(const Problem& problem, const CandidateList& candidates,
                                    const Measurer& measurer) {
    const std::optional<Predicted> best = best_predicted(problem, candidates, measurer);
    if (!best) return candidates.order;
    std::vector<Candidate> tried;
    for (const Candidate& candidate : candidates.order) {
        const std::optional<double> us = measurer.least_us(problem, candidate);
        if (candidates.fallback == candidate || !us || *us <= best->us) tried.push_back(candidate);
    }
    return tried;
}

}  // namespace hone::tuner
