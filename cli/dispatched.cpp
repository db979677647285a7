#include "cli/dispatched.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"
#include "runtime/dispatch/bucket_grid.h"

namespace hone::cli {
namespace {

using ByShape = std::map<std::pair<std::string, std::string>, std::vector<const StoredTrial*>>;

/// What a GPU of this kind may take, whatever its driver and compiler: of a key the first, whose layer is the
/// later one.
cache::StaticWinners loaded(const std::vector<const StoredTrial*>& stored, const cache::GpuKey& gpu) {
    cache::StaticWinners found;
    std::set<cache::TuningKey> seen;
    for (const StoredTrial* one : stored) {
        const cache::Trial& trial = one->trial;
        const cache::Trust trust = cache::trust_of(trial, gpu, trial.toolchain);
        const bool usable = trust == cache::Trust::exact || trust == cache::Trust::foreign;
        if (!usable || trial.provenance == cache::Provenance::predicted) continue;
        if (seen.insert(trial.key).second) found.winners.push_back({trial, trust, one->layer});
    }
    return found;
}

}  // namespace

Dispatched::Dispatched(const DeviceTraits& traits, const std::vector<StoredTrial>& winners)
    : traits_(traits) {
    const auto by_shape = std::make_shared<ByShape>();
    std::vector<cache::GpuKey> gpus;
    for (const StoredTrial& stored : winners) {
        const cache::TuningKey& key = stored.trial.key;
        if (!is_of(key.gpu, traits)) continue;
        (*by_shape)[{key.family, key.static_fields}].push_back(&stored);
        if (std::ranges::find(gpus, key.gpu) == gpus.end()) gpus.push_back(key.gpu);
    }
    for (const cache::GpuKey& gpu : gpus) {
        tables_.emplace_back([by_shape, gpu](std::string_view family, std::string_view static_fields) {
            const auto found = by_shape->find({std::string(family), std::string(static_fields)});
            return found == by_shape->end() ? cache::StaticWinners{} : loaded(found->second, gpu);
        });
    }
}

const std::vector<runtime::Knowledge>& Dispatched::known(const Problem& problem) {
    const auto [place, is_new] = known_.try_emplace(to_string(static_part(problem)));
    if (is_new) {
        for (const runtime::WinnerTable& table : tables_) place->second.push_back(table.find(problem));
    }
    return place->second;
}

std::vector<Candidate> Dispatched::choices(const Problem& problem) {
    std::vector<Candidate> found;
    const auto add = [&](const std::optional<runtime::Choice>& choice) {
        if (choice && std::ranges::find(found, choice->candidate) == found.end())
            found.push_back(choice->candidate);
    };
    for (const runtime::Knowledge& knowledge : known(problem))
        add(runtime::choose(problem, knowledge.winners, traits_));
    add(runtime::choose_fallback(problem, traits_));
    return found;
}

std::vector<Problem> Dispatched::with_sizes_between(std::vector<Problem> problems) {
    problems = with_buckets_between(std::move(problems));
    add_other_choices(problems);
    return problems;
}

std::vector<Problem> Dispatched::with_buckets_between(std::vector<Problem> problems) {
    add_finer(problems);
    return problems;
}

void Dispatched::add_finer(std::vector<Problem>& problems) {
    std::map<std::string, Problem> largest;  // of each static problem
    for (const Problem& problem : problems) {
        const int field = finer_field(*problem.family);
        if (field < 0) continue;
        const auto index = static_cast<std::size_t>(field);
        const auto place = largest.try_emplace(to_string(static_part(problem)), problem).first;
        if (problem[index] > place->second[index]) place->second = problem;
    }
    for (const auto& [_, problem] : largest) {
        const auto field = static_cast<std::size_t>(finer_field(*problem.family));
        std::set<std::int64_t> sizes;
        for (const runtime::Knowledge& knowledge : known(problem)) {
            for (const std::int64_t size : runtime::measured_between(problem, knowledge, traits_))
                if (size < problem[field]) sizes.insert(size);
        }
        for (const std::int64_t size : sizes) {
            const Problem between = with(problem, field, size);
            if (std::ranges::find(problems, between) == problems.end()) problems.push_back(between);
        }
    }
}

/// From the smallest to the largest of each size that a static problem has; keys from 1, since a cache begins
/// empty.
void Dispatched::add_other_choices(std::vector<Problem>& problems) {
    std::map<std::string, std::vector<Problem>> shapes;
    for (const Problem& problem : problems) shapes[to_string(static_part(problem))].push_back(problem);
    for (const auto& [_, sizes] : shapes) {
        if (sizes.size() == 1) continue;  // nothing is between
        Problem least = sizes.front();
        Problem largest = least;
        std::set<std::string> taken;
        for (const Problem& problem : sizes) {
            for (const std::uint8_t index : dynamic_fields(*problem.family)) {
                const bool is_of_keys = problem.family->fields[index].name == "kv_len";
                least.values[index] = is_of_keys ? 1 : std::min(least[index], problem[index]);
                largest.values[index] = std::max(largest[index], problem[index]);
            }
            for (const Candidate& choice : choices(problem)) taken.insert(to_string(choice));
        }
        const runtime::BucketGrid grid(largest, sizes_of(least));
        for (std::size_t cell = 0; cell < grid.cells(); ++cell) {
            const Problem edge = grid.last(cell);
            bool is_other = false;
            for (const Candidate& choice : choices(edge))
                is_other |= allowed(edge, choice, traits_) && taken.insert(to_string(choice)).second;
            if (is_other && std::ranges::find(problems, edge) == problems.end()) problems.push_back(edge);
        }
    }
}

}  // namespace hone::cli
