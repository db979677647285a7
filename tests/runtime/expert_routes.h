// How tests of layers of experts spread rows over experts, sorted as a routing sorts them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace hone::test {

/// `wrong`: starts and rows that no routing makes.
enum class Spread { random, one_expert, last_half, wrong };

/// Pairs of token and slot, and the experts that they go to.
struct ExpertRoutes {
    ExpertRoutes(Spread spread, std::int64_t pairs, std::int64_t expert_count, std::mt19937_64& random) {
        const auto count = static_cast<std::uint64_t>(expert_count);
        for (std::int64_t pair = 0; pair < pairs; ++pair) {
            const std::uint64_t any = random();
            experts.push_back(static_cast<std::int64_t>(spread == Spread::one_expert ? count / 2
                                                        : spread == Spread::last_half
                                                            ? count - 1 - any % (count / 2 + 1)
                                                            : any % count));
        }
        rows.resize(experts.size());
        std::iota(rows.begin(), rows.end(), 0);
        std::ranges::stable_sort(rows, {},
                                 [&](std::int64_t pair) { return experts[static_cast<std::size_t>(pair)]; });
        starts.assign(static_cast<std::size_t>(count) + 1, 0);
        for (const std::int64_t expert : experts) ++starts[static_cast<std::size_t>(expert) + 1];
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        if (spread != Spread::wrong) return;
        for (std::int64_t& start : starts) start = wild(pairs, random);
        for (std::int64_t& row : rows) row = wild(pairs, random);
    }

    std::vector<std::int64_t> experts;  ///< of each pair
    std::vector<std::int64_t> rows;     ///< the pairs, those of an expert behind those of the one before
    std::vector<std::int64_t> starts;   ///< of each expert's among `rows`, and the end

  private:
    /// Now and then a place, else something near or far from one.
    static std::int64_t wild(std::int64_t pairs, std::mt19937_64& random) {
        constexpr std::int64_t far[] = {-1, INT32_MIN, INT32_MAX, 1 << 30};
        if (random() % 3 == 0) return far[random() % 4];
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(pairs + 3)) - 1;
    }
};

}  // namespace hone::test
