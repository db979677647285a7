// Covering sets: few kernels for all sizes, held against every choice there is.
#include "tuner/search/cover.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>

using namespace hone::tuner;

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// Times as kernels have them: each is good around one size, some do not run at some sizes, kernel 0 always
/// does.
TimesBySize drawn_times(std::mt19937_64& random) {
    const auto number = [&](int least, int most) {
        return std::uniform_int_distribution(least, most)(random);
    };
    const int sizes = number(1, 9);
    const int kernels = number(1, 9);
    TimesBySize us(static_cast<std::size_t>(sizes));
    std::vector<int> good_at;
    for (int kernel = 0; kernel < kernels; ++kernel) good_at.push_back(number(0, sizes - 1));
    for (int size = 0; size < sizes; ++size) {
        for (int kernel = 0; kernel < kernels; ++kernel) {
            const int away = std::abs(good_at[static_cast<std::size_t>(kernel)] - size);
            const bool runs = kernel == 0 || number(0, 9) > 0;
            us[static_cast<std::size_t>(size)].push_back(
                runs ? std::pow(2, size) * (1 + 0.03 * away + 0.001 * number(0, 40)) : never);
        }
    }
    return us;
}

/// The least mean loss of all choices of so many kernels; infinity where none serves all sizes.
double least_mean_loss(const TimesBySize& us, std::size_t limit) {
    const std::size_t kernels = us.front().size();
    double least = never;
    for (unsigned chosen = 1; chosen < 1U << kernels; ++chosen) {
        if (static_cast<std::size_t>(std::popcount(chosen)) > limit) continue;
        double logarithms = 0;
        for (const std::vector<double>& times : us) {
            double best = never;
            for (std::size_t kernel = 0; kernel < kernels; ++kernel)
                if ((chosen >> kernel & 1U) != 0) best = std::min(best, times[kernel]);
            logarithms += std::log(best / *std::ranges::min_element(times));
        }
        least = std::min(least, std::exp(logarithms / static_cast<double>(us.size())) - 1);
    }
    return least;
}

}  // namespace

TEST_CASE("one kernel that is good everywhere is better than two that are best somewhere") {
    const TimesBySize us{{10, 10.2, 13}, {13, 10.2, 10}};
    const std::optional<Cover> one = cover(us, 1);
    REQUIRE(one);
    CHECK(one->kernels == std::vector<std::size_t>{1});
    CHECK(one->kernel_of_size == std::vector<std::size_t>{1, 1});
    CHECK(one->mean_loss == doctest::Approx(0.02));
    CHECK(one->worst_loss == doctest::Approx(0.02));
    const std::optional<Cover> two = cover(us, 2);
    REQUIRE(two);
    CHECK(std::set<std::size_t>(two->kernels.begin(), two->kernels.end()) == std::set<std::size_t>{0, 2});
    CHECK(two->kernel_of_size == std::vector<std::size_t>{0, 2});
    CHECK(two->mean_loss == doctest::Approx(0));
    CHECK(cover(us, 9)->kernels.size() == 2);
}

TEST_CASE("what was not measured is not assumed: a kernel that does not serve a size is no answer for it") {
    const TimesBySize us{{10, 20, never}, {never, 20, 10}};
    CHECK(cover(us, 1)->kernels == std::vector<std::size_t>{1});
    CHECK(cover(us, 2)->mean_loss == doctest::Approx(0));
    CHECK_FALSE(cover({{10, never}, {never, 10}}, 1));
    CHECK_FALSE(cover({{10}}, 0));
}

TEST_CASE("never more kernels than asked for, each size runs its fastest, and the loss is what was said") {
    std::mt19937_64 random(1);
    for (int draw = 0; draw < 300; ++draw) {
        const TimesBySize us = drawn_times(random);
        for (std::size_t limit = 1; limit <= us.front().size(); ++limit) {
            const std::optional<Cover> found = cover(us, limit);
            REQUIRE(found);  // kernel 0 runs everywhere
            CHECK(found->kernels.size() <= limit);
            CHECK(std::set<std::size_t>(found->kernels.begin(), found->kernels.end()).size() ==
                  found->kernels.size());
            double logarithms = 0;
            double worst = 0;
            for (std::size_t size = 0; size < us.size(); ++size) {
                const double taken = us[size][found->kernel_of_size[size]];
                for (const std::size_t kernel : found->kernels) CHECK(taken <= us[size][kernel]);
                CHECK(std::ranges::count(found->kernels, found->kernel_of_size[size]) == 1);
                const double loss = taken / *std::ranges::min_element(us[size]);
                logarithms += std::log(loss);
                worst = std::max(worst, loss - 1);
            }
            CHECK(found->mean_loss ==
                  doctest::Approx(std::exp(logarithms / static_cast<double>(us.size())) - 1));
            CHECK(found->worst_loss == doctest::Approx(worst));
        }
    }
}

TEST_CASE(
    "the loss falls with the number of kernels, is nothing with all, and hardly above the least there is") {
    std::mt19937_64 random(2);
    int choices = 0;
    int best = 0;
    for (int draw = 0; draw < 300; ++draw) {
        const TimesBySize us = drawn_times(random);
        const std::size_t kernels = us.front().size();
        double before = never;
        for (std::size_t limit = 1; limit <= kernels; ++limit) {
            const double loss = cover(us, limit)->mean_loss;
            CHECK(loss <= before + 1e-9);
            before = loss;
            const double least = least_mean_loss(us, limit);
            CHECK(loss <= least + 0.005);
            ++choices;
            best += loss <= least + 1e-9 ? 1 : 0;
        }
        CHECK(before == doctest::Approx(0));
    }
    CHECK(best * 100 >= choices * 98);
    MESSAGE("the best choice there is in ", best, " of ", choices);
}
