#include "tuner/search/statistics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

using namespace hone::tuner;

TEST_CASE("the median of an even number of samples is half way between the middle two") {
    CHECK(median(std::vector<double>{4, 1, 3, 2}) == doctest::Approx(2.5));
    CHECK(median(std::vector<double>{}) == 0);
    CHECK(quantile(std::vector<double>{1, 2, 3, 4, 5}, 0.1) == doctest::Approx(1.4));
}

TEST_CASE("the trimmed mean leaves a tenth out at either end, of three or more at least one") {
    CHECK(trimmed_mean(std::vector<double>{9, 1, 3, 2}) == doctest::Approx(2.5));
    CHECK(trimmed_mean(std::vector<double>{100, 1, 2, 3, 4, 0}) == doctest::Approx(2.5));
    CHECK(trimmed_mean(std::vector<double>{5, 1, 90}) == 5);
    CHECK(trimmed_mean(std::vector<double>{2, 4}) == 3);
    std::vector<double> thirty(30, 1.0);
    for (std::size_t i = 0; i < 3; ++i) thirty[i] = 1000;
    CHECK(trimmed_mean(thirty) == 1);
    thirty[3] = 1000;
    CHECK(trimmed_mean(thirty) > 1);
    CHECK(trimmed_mean(std::vector<double>{7}) == 7);
    CHECK(trimmed_mean(std::vector<double>{}) == 0);
}

TEST_CASE("between two levels the trimmed mean moves as far as samples do, where a median jumps") {
    std::vector<double> levels(10, 1.0);
    for (int high = 1; high <= 10; ++high) {
        const double before = trimmed_mean(levels);
        levels[static_cast<std::size_t>(high) - 1] = 2;
        CHECK(trimmed_mean(levels) - before <= 1.0 / 8 + 1e-12);
    }
    CHECK(trimmed_mean(levels) == 2);
}

TEST_CASE("few samples give their whole range as the interval") {
    const Interval interval = trimmed_mean_interval(std::vector<double>{3, 1, 2});
    CHECK(interval.low == 1);
    CHECK(interval.high == 3);
}

TEST_CASE("the interval is that of the winsorized variance") {
    // 12 samples: ten are left over, t of nine degrees of freedom is 2.262; winsorized they are 2 2 3 4 5 6 7
    // 8 9 10 11 11, whose squares of differences from 6.5 sum up to 123.
    std::vector<double> samples;
    for (int i = 1; i <= 12; ++i) samples.push_back(i);
    const Interval interval = trimmed_mean_interval(samples);
    CHECK((interval.high + interval.low) / 2 == doctest::Approx(6.5));
    CHECK((interval.high - interval.low) / 2 == doctest::Approx(2.262 * std::sqrt(123.0 / 90)).epsilon(0.01));
    const Interval none = trimmed_mean_interval(std::vector<double>(8, 3.0));
    CHECK(none.low == 3);
    CHECK(none.high == 3);
}

TEST_CASE("the interval holds the true trimmed mean in about 95 of 100 draws, of one level or of two") {
    std::mt19937_64 random(7);
    std::normal_distribution<double> even(1, 0.1);
    std::bernoulli_distribution is_high(0.5);
    for (const bool has_levels : {false, true}) {
        int held = 0;
        constexpr int draws = 2000;
        for (int draw = 0; draw < draws; ++draw) {
            std::vector<double> samples(30);
            std::ranges::generate(samples, [&] {
                return has_levels ? (is_high(random) ? 1.1 : 0.9) + even(random) / 100 - 0.01 : even(random);
            });
            const Interval interval = trimmed_mean_interval(samples);
            held += interval.low <= 1.0 && 1.0 <= interval.high;
        }
        CAPTURE(has_levels);
        CHECK(held >= draws * 93 / 100);
    }
}

TEST_CASE("a summary counts its samples and orders its quantiles") {
    const auto timing = summarize(std::vector<double>{5, 4, 3, 2, 1});
    CHECK(timing.samples == 5);
    CHECK(timing.median_us == 3);
    CHECK(timing.p10_us <= timing.median_us);
    CHECK(timing.median_us <= timing.p90_us);
}
