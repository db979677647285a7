// Which recorded times can be compared: made-up sweeps on a clock that falls.
#include "bench/comparable.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <random>

using namespace hone;
using bench::Comparable;

namespace {

constexpr int kernels = 24;
constexpr int heat_rounds = 10;

std::string name_of(int kernel) { return "kernel " + std::to_string(100 + kernel); }

/// What a kernel takes at the highest clock.
double base_us(int kernel) { return 100 * (1 + 0.01 * kernel); }

/// Three samples of a screening, ten of a heat, and of the first five kernels ten of a final; `slower` says by
/// how much the clock, at a kernel and a round of the heat, makes it so.
tuner::RecordedProblem sweep(const std::function<double(int kernel, int round)>& slower) {
    std::mt19937 random(5);
    std::normal_distribution<double> noise(0, 0.002);
    tuner::RecordedProblem problem;
    for (int kernel = 0; kernel < kernels; ++kernel) {
        std::vector<double>& us = problem.candidates[name_of(kernel)].us;
        const auto add = [&](double factor) {
            us.push_back(base_us(kernel) * factor * std::exp(noise(random)));
        };
        for (int i = 0; i < 3; ++i) add(1);
        for (int round = 0; round < heat_rounds; ++round) add(slower(kernel, round));
        for (int round = 0; round < 10 && kernel < 5; ++round) add(1.12);
    }
    return problem;
}

double falls_by_round(int, int round) { return 1.12 - 0.12 * std::exp(-0.5 * round); }
double falls_by_kernel(int kernel, int) { return 1.12 - 0.12 * std::exp(-0.2 * kernel); }

}  // namespace

TEST_CASE("a heat in rounds is told from one of kernels one after another, where the clock moves") {
    const Comparable rounds(sweep(falls_by_round));
    CHECK(rounds.clock_moved);
    CHECK(rounds.in_rounds);
    CHECK(rounds.is_fair());

    const Comparable turns(sweep(falls_by_kernel));
    CHECK(turns.clock_moved);
    CHECK_FALSE(turns.in_rounds);
    CHECK_FALSE(turns.is_fair());
}

TEST_CASE("on a steady clock any heat is fair, and its times stay as they are") {
    const tuner::RecordedProblem problem = sweep([](int, int) { return 1.0; });
    tuner::RecordedProblem steady = problem;
    for (auto& [_, candidate] : steady.candidates) candidate.us.resize(13);  // its finals ran at another clock
    const Comparable comparable(steady);
    CHECK_FALSE(comparable.clock_moved);
    CHECK(comparable.is_fair());
    for (const auto& [_, candidate] : steady.candidates)
        CHECK(*comparable.heat(candidate.us) == bench::part(candidate.us, 3, 13));
}

TEST_CASE("what a round does to all kernels is taken from their times") {
    const tuner::RecordedProblem problem = sweep(falls_by_round);
    const Comparable comparable(problem);
    const auto typical_of = [&](int kernel) {
        const std::vector<double>& us = problem.candidates.at(name_of(kernel)).us;
        return tuner::median(*comparable.heat(us));
    };
    for (int kernel = 1; kernel < kernels; ++kernel)
        CHECK(typical_of(kernel) / typical_of(0) ==
              doctest::Approx(base_us(kernel) / base_us(0)).epsilon(0.006));
    const std::vector<double>& winner = problem.candidates.at(name_of(0)).us;
    CHECK(tuner::median(comparable.final_samples(winner)) ==
          doctest::Approx(typical_of(0)).epsilon(0.006));
}

TEST_CASE("whoever ran in other rounds has no time to compare") {
    tuner::RecordedProblem problem = sweep(falls_by_round);
    std::vector<double>& later = problem.candidates.at(name_of(20)).us;  // in a race of its own, from a cold start
    for (int round = 0; round < heat_rounds; ++round)
        later[3 + static_cast<std::size_t>(round)] = base_us(20) * (round < 6 ? 1.0 : 1.12);
    const Comparable comparable(problem);
    CHECK(comparable.is_fair());
    CHECK_FALSE(comparable.heat(later));
    CHECK(comparable.heat(problem.candidates.at(name_of(19)).us));
}
