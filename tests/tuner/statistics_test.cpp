#include "tuner/search/statistics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace hone::tuner;

TEST_CASE("the median of an even number of samples is half way between the middle two") {
    CHECK(median(std::vector<double>{4, 1, 3, 2}) == doctest::Approx(2.5));
    CHECK(median(std::vector<double>{}) == 0);
    CHECK(quantile(std::vector<double>{1, 2, 3, 4, 5}, 0.1) == doctest::Approx(1.4));
}

TEST_CASE("few samples give their whole range as the interval") {
    const Interval interval = median_interval(std::vector<double>{3, 1, 2});
    CHECK(interval.low == 1);
    CHECK(interval.high == 3);
}

TEST_CASE("the ranks of the median's interval are those of the binomial table") {
    // Conover, table A3: n = 10 -> ranks 2 and 9; n = 20 -> 6 and 15; n = 30 -> 10 and 21.
    for (const auto& [n, rank] : {std::pair{10, 2}, std::pair{20, 6}, std::pair{30, 10}}) {
        std::vector<double> samples;
        for (int i = 1; i <= n; ++i) samples.push_back(i);
        CHECK(median_interval(samples).low == rank);
        CHECK(median_interval(samples).high == n + 1 - rank);
    }
}

TEST_CASE("the interval holds the true median in at least 95 of 100 draws") {
    std::mt19937_64 random(7);
    std::lognormal_distribution<double> skewed(0, 0.5);
    int held = 0;
    constexpr int draws = 2000;
    for (int draw = 0; draw < draws; ++draw) {
        std::vector<double> samples(15);
        std::ranges::generate(samples, [&] { return skewed(random); });
        const Interval interval = median_interval(samples);
        held += interval.low <= 1.0 && 1.0 <= interval.high;
    }
    CHECK(held >= draws * 95 / 100);
}

TEST_CASE("a summary counts its samples and orders its quantiles") {
    const auto timing = summarize(std::vector<double>{5, 4, 3, 2, 1});
    CHECK(timing.samples == 5);
    CHECK(timing.median_us == 3);
    CHECK(timing.p10_us <= timing.median_us);
    CHECK(timing.median_us <= timing.p90_us);
}
