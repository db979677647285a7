#include "tuner/search/shared_work.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "runtime/compile/compile_time.h"
#include "tuner/models/shards.h"

namespace hone::tuner {
namespace {

/// The last, the first, the last but one, the second and so on.
std::vector<std::size_t> from_both_ends(std::size_t count) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < count; ++i) order.push_back(i % 2 == 0 ? count - 1 - i / 2 : i / 2);
    return order;
}

/// For an image of the family's slowest template.
std::chrono::microseconds longest_compile(const Family& family) {
    std::chrono::microseconds longest{};
    for (const Variant* variant : family.variants)
        longest = std::max(longest, runtime::compile_time(variant->source));
    return longest;
}

/// The last sizes of all shapes, then their first ones, their last but one and so on. So a neighbour's winner
/// is known by the time that a size has its turn, and images made for it have long been asked for; calls that
/// take the GPU long give compilers time for the images of short ones, from the start on; and no long one is
/// left for the end. In each round those come first that have their images first. A capture's problems stand
/// in their order already.
std::vector<std::size_t> in_turns(const Workload& workload, const std::vector<std::size_t>& hand) {
    if (!workload.captured.empty()) return hand;
    std::map<std::string, std::vector<std::size_t>> parts;
    for (const std::size_t index : hand)
        parts[to_string(static_part(workload.problems[index]))].push_back(index);
    std::vector<std::tuple<std::size_t, std::chrono::microseconds, std::size_t>> turns;  // round, and index
    for (const auto& [_, sizes] : parts) {
        std::size_t round = 0;
        for (const std::size_t place : from_both_ends(sizes.size())) {
            const std::size_t index = sizes[place];
            turns.emplace_back(round++, longest_compile(*workload.problems[index].family), index);
        }
    }
    std::ranges::sort(turns);
    std::vector<std::size_t> order;
    for (const auto& [round, compile, index] : turns) order.push_back(index);
    return order;
}

std::vector<std::vector<std::size_t>> lists_of(const Workload& workload, std::size_t most_hands) {
    std::vector<std::vector<std::size_t>> lists;
    for (const std::vector<std::size_t>& hand : dealt(workload, most_hands))
        lists.push_back(in_turns(workload, hand));
    if (lists.empty()) lists.emplace_back();
    return lists;
}

std::vector<std::chrono::milliseconds> costs_of(const Workload& workload) {
    std::vector<std::chrono::milliseconds> costs;
    for (const Problem& problem : workload.problems) costs.push_back(tuning_time(problem));
    return costs;
}

}  // namespace

SharedWork::SharedWork(const Workload& of, std::size_t most_hands, const DeviceTraits& traits)
    : workload(of),
      lists(lists_of(of, most_hands)),
      agenda(lists, costs_of(of)),
      predictions(traits),
      asked(traits.arch()),
      results(of.problems.size()) {}

std::string left_to_others(SharedWork& work, std::size_t hand, const std::exception& error) {
    if (!work.agenda.leave(hand)) throw;
    return error.what();
}

}  // namespace hone::tuner
