#include "tuner/models/shards.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "tuner/models/call_time.h"

namespace hone::tuner {
namespace {

// Round numbers of an H200, as in call_time.cpp: llama-3-8b adds up to 50 s, which is what it takes.
constexpr std::int64_t reference_flops_a_ns = 1'000;  // the reference kernel's, over two sets of inputs
constexpr std::int64_t rotated_bytes = 190'000'000;   // by the sets of inputs that a replay goes through
constexpr std::int64_t replays = 250;                 // of a dozen candidates, in all stages of the race
constexpr std::int64_t fixed_ns = 60'000'000;         // loading, verifying and bookkeeping
constexpr std::int64_t images_ms = 500;               // once a static part: what its sizes share

/// Calls of one replay, as tuner/gpu/input_sets.h chooses them.
std::int64_t calls_a_replay(const Problem& problem, std::int64_t bytes) {
    std::int64_t weight_bytes = 0;
    std::int64_t other_bytes = 0;
    for (const Argument& argument : problem.family->arguments(problem))
        (argument.role == Role::weight ? weight_bytes : other_bytes) += argument.bytes();
    const std::int64_t least = weight_bytes > 8 * other_bytes ? 10 : 2;
    return std::clamp<std::int64_t>(rotated_bytes / std::max<std::int64_t>(1, bytes), least, 64);
}

struct Cost {
    std::int64_t ms = 0;
    bool begins_part = false;  ///< the first problem of its static part
};

/// Numbers of the problems, those of one static part together.
std::vector<std::size_t> grouped(const std::vector<Problem>& problems) {
    std::map<std::string, std::size_t> first;  // of each static part
    std::vector<std::pair<std::size_t, std::size_t>> places;
    for (std::size_t i = 0; i < problems.size(); ++i)
        places.emplace_back(first.emplace(to_string(static_part(problems[i])), i).first->second, i);
    std::ranges::sort(places);
    std::vector<std::size_t> numbers;
    for (const auto& [part, number] : places) numbers.push_back(number);
    return numbers;
}

std::vector<Cost> costs_of(const std::vector<Problem>& problems) {
    std::vector<Cost> costs;
    for (std::size_t i = 0; i < problems.size(); ++i) {
        const bool begins = i == 0 || static_part(problems[i]) != static_part(problems[i - 1]);
        costs.push_back({tuning_time(problems[i]).count(), begins});
    }
    return costs;
}

/// The share of each problem, by number, where none may take longer than `most_ms`: each takes what fits.
std::vector<std::size_t> filled(const std::vector<Cost>& costs, std::int64_t most_ms) {
    std::vector<std::size_t> shares;
    std::size_t share = 0;
    std::int64_t taken_ms = 0;
    for (const Cost& cost : costs) {
        const bool needs_images = cost.begins_part || taken_ms == 0;
        const std::int64_t more_ms = cost.ms + (needs_images ? images_ms : 0);
        if (taken_ms > 0 && taken_ms + more_ms > most_ms) {
            ++share;
            taken_ms = cost.ms + images_ms;
        } else {
            taken_ms += more_ms;
        }
        shares.push_back(share);
    }
    return shares;
}

/// The same for the least longest share that leaves no more than `count` of them.
std::vector<std::size_t> levelled(const std::vector<Cost>& costs, std::size_t count) {
    const auto add = [](std::int64_t sum, const Cost& cost) { return sum + cost.ms + images_ms; };
    std::int64_t enough_ms = std::accumulate(costs.begin(), costs.end(), std::int64_t{0}, add);
    std::int64_t too_little_ms = 0;
    while (enough_ms - too_little_ms > 1) {
        const std::int64_t middle_ms = too_little_ms + (enough_ms - too_little_ms) / 2;
        (filled(costs, middle_ms).back() < count ? enough_ms : too_little_ms) = middle_ms;
    }
    return filled(costs, enough_ms);
}

/// Of each problem, in the workload's order; at least one problem.
std::vector<std::size_t> share_of_each(const std::vector<Problem>& problems, std::size_t count) {
    const std::vector<std::size_t> numbers = grouped(problems);
    std::vector<Problem> neighbours;
    for (const std::size_t number : numbers) neighbours.push_back(problems[number]);
    const std::vector<std::size_t> filled = levelled(costs_of(neighbours), count);
    std::vector<std::size_t> shares(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) shares[numbers[i]] = filled[i];
    return shares;
}

}  // namespace

std::chrono::milliseconds tuning_time(const Problem& problem) {
    const Work work = problem.family->work(problem);
    const auto bytes = static_cast<std::int64_t>(work.bytes);
    const auto flops = static_cast<std::int64_t>(work.flops);
    const std::int64_t race_ns = replays * calls_a_replay(problem, bytes) * call_time(problem).count();
    return std::chrono::milliseconds((fixed_ns + flops / reference_flops_a_ns + race_ns) / 1'000'000);
}

std::vector<Workload> shards_of(const Workload& workload, std::size_t count) {
    std::vector<Workload> shards(
        count, Workload{.name = workload.name, .problems = {}, .tuned = {}, .without_family = {}});
    if (workload.problems.empty()) return shards;
    const std::vector<std::size_t> shares = share_of_each(workload.problems, count);
    for (std::size_t i = 0; i < shares.size(); ++i)
        shards[shares[i]].problems.push_back(workload.problems[i]);
    for (std::size_t i = 0; i < workload.captured.size(); ++i)
        shards[shares[i]].captured.push_back(workload.captured[i]);
    for (const TunedOperator& op : workload.tuned) {
        const auto place = std::ranges::find(workload.problems, op.problem) - workload.problems.begin();
        shards[shares[static_cast<std::size_t>(place)]].tuned.push_back(op);
    }
    return shards;
}

std::vector<std::vector<std::size_t>> dealt(const Workload& workload, std::size_t count) {
    std::vector<std::vector<std::size_t>> hands(count);
    if (workload.problems.empty()) return {};
    const std::vector<std::size_t> shares = share_of_each(workload.problems, count);
    for (std::size_t i = 0; i < shares.size(); ++i) hands[shares[i]].push_back(i);
    std::erase_if(hands, [](const std::vector<std::size_t>& hand) { return hand.empty(); });
    return hands;
}

}  // namespace hone::tuner
