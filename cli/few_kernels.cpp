#include "cli/few_kernels.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

#include "kernel_templates/catalog.h"
#include "tuner/search/cover.h"

namespace hone::cli {
namespace {

/// Microseconds a call at one size on one GPU, by candidate.
using Times = std::map<std::string, double>;

/// Whether a result says something about kernels of this build, at one of these sizes of a static problem, on
/// this architecture.
class Relevant {
  public:
    Relevant(const std::vector<Problem>& sizes, const DeviceTraits& traits)
        : traits_(traits), sizes_(sizes), static_fields_(static_text(sizes.front())) {}

    [[nodiscard]] bool operator()(const cache::Trial& trial) const {
        if (trial.key.family != sizes_.front().family->name || trial.key.static_fields != static_fields_)
            return false;
        const cache::GpuKey& gpu = trial.key.gpu;
        if (!is_of(gpu, traits_)) return false;
        const bool is_one = std::ranges::any_of(
            sizes_, [&](const Problem& size) { return dynamic_text(size) == trial.key.dynamic_fields; });
        const auto candidate = parse_candidate(*sizes_.front().family, trial.candidate);
        return is_one && candidate && template_hash(*candidate->variant) == trial.template_hash;
    }

  private:
    const DeviceTraits& traits_;
    const std::vector<Problem>& sizes_;
    const std::string static_fields_;
};

/// The winner of each size and GPU in the first layer that has one.
std::map<cache::TuningKey, std::string> winners_of(const std::vector<StoredTrial>& all,
                                                   const Relevant& relevant) {
    std::map<cache::TuningKey, std::string> winners;
    for (const StoredTrial& stored : all) {
        if (relevant(stored.trial)) winners.emplace(stored.trial.key, stored.trial.candidate);
    }
    return winners;
}

/// What is known of a kernel is the last trial of the first layer that has one.
std::map<cache::TuningKey, Times> times_of(const cache::Filter& filter, const Relevant& relevant,
                                           const Console& console) {
    std::map<cache::TuningKey, Times> times;
    std::map<std::pair<cache::TuningKey, std::string>, std::string> layers;
    for (const auto& [trial, layer] : stored_trials(filter, console)) {
        const bool has_raced = trial.status == cache::TrialStatus::ok &&
                               trial.stage != cache::Stage::screened &&
                               trial.provenance != cache::Provenance::predicted;
        if (!has_raced || !relevant(trial)) continue;
        if (layers.emplace(std::pair(trial.key, trial.candidate), layer).first->second == layer)
            times[trial.key][trial.candidate] = trial.timing.median_us;
    }
    return times;
}

void choose(const std::map<cache::TuningKey, std::string>& winners,
            const std::map<cache::TuningKey, Times>& times, std::size_t limit, tuner::CoverResult& result) {
    std::set<std::string> all;
    for (const auto& [key, of_size] : times) {
        for (const auto& [candidate, us] : of_size) all.insert(candidate);
    }
    const std::vector<std::string> pool(all.begin(), all.end());
    tuner::TimesBySize us;
    for (const auto& [key, _] : winners) {
        const auto of_size = times.find(key);
        if (of_size == times.end()) continue;  // predicted, or of a layer that keeps no races
        std::vector<double>& row = us.emplace_back();
        for (const std::string& candidate : pool) {
            const auto found = of_size->second.find(candidate);
            row.push_back(found == of_size->second.end() ? std::numeric_limits<double>::infinity()
                                                         : found->second);
        }
    }
    const std::optional<tuner::Cover> found = us.empty() ? std::nullopt : tuner::cover(us, limit);
    if (!found) {
        result.failure = fmt::format(
            "no {} kernels were measured at all {} sizes (hone tune --kernels measures what is missing)",
            limit, winners.size());
        return;
    }
    for (const std::size_t kernel : found->kernels) result.kernels.push_back(pool[kernel]);
    result.mean_loss = found->mean_loss;
    result.worst_loss = found->worst_loss;
}

}  // namespace

void set_not_covered(const std::vector<tuner::CoverResult>& covers, Outcome& outcome) {
    for (const tuner::CoverResult& cover : covers) {
        if (cover.failure.empty()) continue;
        outcome.exit = ExitCode::nothing_valid;
        outcome.error = {
            "not_covered",
            fmt::format("{} {}: {}", cover.problem.family->name, static_text(cover.problem), cover.failure),
            "allow more of them with --kernels"};
        return;
    }
}

tuner::CoverResult stored_cover(const std::vector<Problem>& sizes, std::size_t limit,
                                const DeviceTraits& traits, const std::vector<StoredTrial>& all,
                                const Console& console) {
    const Relevant relevant(sizes, traits);
    const std::map<cache::TuningKey, std::string> winners = winners_of(all, relevant);
    tuner::CoverResult result{.problem = sizes.front(), .sizes = winners.size()};
    std::set<std::string> kernels;
    for (const auto& [key, candidate] : winners) kernels.insert(candidate);
    if (kernels.size() <= limit) {
        result.kernels.assign(kernels.begin(), kernels.end());
        return result;
    }
    cache::Filter filter = filter_of(sizes.front());
    filter.dynamic_fields.clear();
    choose(winners, times_of(filter, relevant, console), limit, result);
    return result;
}

}  // namespace hone::cli
