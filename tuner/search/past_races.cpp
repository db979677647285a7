#include "tuner/search/past_races.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "kernel_templates/catalog.h"
#include "runtime/dispatch/choice.h"

namespace hone::tuner {
namespace {

using cache::Trial;

std::string text_of(const cache::TuningKey& key) {
    const cache::GpuKey& gpu = key.gpu;
    return fmt::format("{} {} {}\n{} {} {} {} {} {}", key.family, key.static_fields, key.dynamic_fields,
                       gpu.name, gpu.compute_major, gpu.compute_minor, gpu.sm_count, gpu.memory_clock_mhz,
                       gpu.mig_profile);
}

constexpr double another_gpu = 0.5;  // doublings that a GPU of another kind counts for

std::array<double, max_fields> logs_of(const Problem& problem) {
    std::array<double, max_fields> logs{};
    for (std::size_t i = 0; i < max_fields; ++i) logs[i] = std::log2(static_cast<double>(problem[i] + 1));
    return logs;
}

/// What the nearest has least of, in this order.
auto distance_of(const Precedent& precedent) {
    return std::tuple(!precedent.same_shape, precedent.unlikeness,
                      precedent.doublings + (precedent.same_gpu ? 0 : another_gpu), !precedent.same_problem);
}

double unlikeness(const PastRace& race, const Problem& problem, const std::array<double, max_fields>& logs) {
    double sum = 0;
    for (std::size_t i = 0; i < problem.family->fields.size(); ++i) {
        const bool is_choice = problem.family->fields[i].kind == Field::Kind::choice;
        sum += is_choice ? (race.problem[i] == problem[i] ? 0.0 : 1.0) : std::abs(race.logs[i] - logs[i]);
    }
    return sum;
}

std::optional<MeasuredKernel> kernel_of(const Family& family, const Trial& trial) {
    const std::optional<Candidate> candidate = parse_candidate(family, trial.candidate);
    if (!candidate) return std::nullopt;
    return MeasuredKernel{*candidate, trial.timing.median_us};
}

void add_kernel(const MeasuredKernel& kernel, std::vector<MeasuredKernel>& kernels) {
    const auto known = std::ranges::find(kernels, kernel.candidate, &MeasuredKernel::candidate);
    if (known == kernels.end()) {
        kernels.push_back(kernel);
    } else if (known != kernels.begin()) {
        known->us = kernel.us;  // trials come in the order in which they were stored
    }
}

/// The winner's race with the winner alone.
std::optional<PastRace> race_of(const Trial& winner) {
    const Family* family = find_family(winner.key.family);
    if (family == nullptr) return std::nullopt;
    const auto problem = parse_problem(*family, winner.key.static_fields + ' ' + winner.key.dynamic_fields);
    const std::optional<MeasuredKernel> kernel = kernel_of(*family, winner);
    if (!problem || !kernel) return std::nullopt;
    return PastRace{.gpu = winner.key.gpu,
                    .problem = *problem,
                    .winner_template = winner.template_hash,
                    .kernels = {*kernel},
                    .shape = static_part(*problem),
                    .logs = logs_of(*problem)};
}

}  // namespace

bool PastRace::is_current() const {
    return template_hash(*kernels.front().candidate.variant) == winner_template;
}

PastRace* PastRaces::find(const cache::TuningKey& key) {
    const auto found = by_key_.find(text_of(key));
    return found == by_key_.end() ? nullptr : found->second;
}

void PastRaces::add(std::span<const Trial> trials) {
    std::set<const PastRace*> is_new;
    for (const Trial& trial : trials)
        if (trial.winner) add_winner(trial, is_new);
    for (const Trial& trial : trials)
        if (!trial.winner) add_other(trial, is_new);
}

void PastRaces::add_winner(const Trial& winner, std::set<const PastRace*>& is_new) {
    if (winner.provenance == cache::Provenance::predicted) return;
    std::optional<PastRace> won = race_of(winner);
    if (!won) return;
    if (PastRace* race = find(winner.key); race != nullptr) {  // an older winner of the same layer
        if (is_new.contains(race)) add_kernel(won->kernels.front(), race->kernels);
        return;
    }
    PastRace& race = races_[winner.key.family].emplace_back(*std::move(won));
    by_key_.emplace(text_of(winner.key), &race);
    by_shape_[to_string(race.shape)].push_back(&race);
    is_new.insert(&race);
}

void PastRaces::add_other(const Trial& other, const std::set<const PastRace*>& is_new) {
    PastRace* race = find(other.key);
    if (race == nullptr || !is_new.contains(race)) return;
    if (const auto kernel = kernel_of(*race->problem.family, other)) add_kernel(*kernel, race->kernels);
}

/// Apart from what was stored of the same problem: that stays what every run starts from.
void PastRaces::learn(const Trial& winner) {
    std::optional<PastRace> won = race_of(winner);
    if (!won) return;
    won->of_this_run = true;
    PastRace*& race = of_this_run_[text_of(winner.key)];
    if (race == nullptr) race = &races_[winner.key.family].emplace_back();
    *race = *std::move(won);
}

std::vector<Precedent> PastRaces::nearest(const Problem& problem) const {
    std::vector<Precedent> near;
    const auto races = races_.find(problem.family->name);
    if (races == races_.end()) return near;
    const Problem shape = static_part(problem);
    const std::array<double, max_fields> logs = logs_of(problem);
    near.reserve(races->second.size());
    for (const PastRace& race : races->second) {
        const bool same_shape = race.shape == shape;
        near.push_back({.race = &race,
                        .same_gpu = race.gpu == here_,
                        .same_problem = race.problem == problem,
                        .same_shape = same_shape,
                        .doublings = runtime::log2_distance(race.problem, problem),
                        .unlikeness = same_shape ? 0 : unlikeness(race, problem, logs)});
    }
    std::ranges::stable_sort(near, {}, distance_of);
    return near;
}

std::optional<Precedent> PastRaces::nearest_stored(const Problem& problem) const {
    const auto of_shape = by_shape_.find(to_string(static_part(problem)));
    if (of_shape == by_shape_.end()) {
        const auto races = races_.find(problem.family->name);
        if (races == races_.end()) return std::nullopt;
        const auto stored = std::ranges::find(races->second, false, &PastRace::of_this_run);
        if (stored == races->second.end()) return std::nullopt;
        return Precedent{.race = &*stored, .same_gpu = stored->gpu == here_};
    }
    std::optional<Precedent> nearest;
    for (const PastRace* race : of_shape->second) {
        const Precedent one{.race = race,
                            .same_gpu = race->gpu == here_,
                            .same_problem = race->problem == problem,
                            .same_shape = true,
                            .doublings = runtime::log2_distance(race->problem, problem)};
        if (!nearest || distance_of(one) < distance_of(*nearest)) nearest = one;
    }
    return nearest;
}

}  // namespace hone::tuner
