#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>

#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"

namespace hone {
namespace {

DeviceTraits hopper() { return *representative_device({9, 0, true}); }

Problem row_problem(std::int64_t rows) {
    const auto problem = parse_problem("rmsnorm dtype=bf16 hidden=4096 rows=" + std::to_string(rows));
    REQUIRE(problem);
    return *problem;
}

TEST_CASE("the shares of the knots are 1 in all, of two neighbours, and of the outermost beyond them") {
    for (double floor_us = 1e-4; floor_us < 1e6; floor_us *= 1.7) {
        CAPTURE(floor_us);
        const auto shares = knot_shares(floor_us);
        CHECK(std::accumulate(shares.begin(), shares.end(), 0.0) == doctest::Approx(1));
        CHECK(std::ranges::count_if(shares, [](double x) { return x != 0; }) <= 2);
        double middle = 0;
        for (std::size_t i = 0; i < shares.size(); ++i) middle += shares[i] * calibration_knots[i];
        CHECK(middle == doctest::Approx(std::clamp(std::log2(floor_us), -4.0, 10.0)));
    }
    CHECK(knot_shares(0).front() == 1);
    CHECK(knot_shares(1e9).back() == 1);
}

TEST_CASE("the floor is that of bytes or of operations, whichever is more") {
    const DeviceTraits traits = hopper();
    const Problem norm = row_problem(16384);
    CHECK(floor_us(norm, traits) ==
          doctest::Approx(norm.family->work(norm).bytes / traits.memory_bytes_per_s * 1e6));
    const auto linear = parse_problem("linear dtype=bf16 in=8192 out=8192 tokens=8192");
    REQUIRE(linear);
    const double flops_per_us = 4096e-3 * traits.sm_count * traits.sm_clock_khz;
    CHECK(floor_us(*linear, traits) == doctest::Approx(linear->family->work(*linear).flops / flops_per_us));
}

TEST_CASE("a coefficient counts for its variant and value only, at its sizes") {
    const DeviceTraits traits = hopper();
    Problem problem = row_problem(8192);
    Family family = *problem.family;
    const Variant& variant = *family.variants[0];
    const Tunable& tunable = variant.tunables[0];
    const Coefficient coefficients[] = {
        {"", "", 0, {10, 10, 10, 10, 10, 10, 10, 10}},
        {variant.name, "", 0, {100, 100, 100, 100, 100, 100, 100, 100}},
        {variant.name, tunable.name, tunable.values.items[1], {0, 0, 0, 0, -500, -500, -500, -500}},
        {"another", "", 0, {900, 900, 900, 900, 900, 900, 900, 900}},
    };
    family.calibration = coefficients;
    problem.family = &family;
    REQUIRE(floor_us(problem, traits) > 16);  // beyond the knot from which on the second one is full
    Config config;
    config[0] = tunable.values.items[0];
    const Correction correction(problem, variant, traits);
    CHECK(correction.factor(config) == doctest::Approx(std::exp(0.11)));
    config[0] = tunable.values.items[1];
    CHECK(correction.factor(config) == doctest::Approx(std::exp(0.11 - 0.5)));
    CHECK(correction.factor(0, tunable.values.items[1]) == doctest::Approx(std::exp(-0.5)));
    CHECK(correction.factor(0, tunable.values.items[0]) == 1);
    CHECK(Correction(problem, *family.variants[1], traits).factor(config) == doctest::Approx(std::exp(0.01)));
}

TEST_CASE("a coefficient of a tunable that is read with another one counts beside its value alone") {
    const DeviceTraits traits = hopper();
    Problem problem = row_problem(8192);
    Family family = *problem.family;
    Variant variant = *family.variants[0];
    std::vector<Tunable> tunables(variant.tunables.begin(), variant.tunables.end());
    REQUIRE(tunables.size() > 1);
    tunables[0].read_with = tunables[1].name;
    variant.tunables = tunables;
    const std::int64_t value = tunables[0].values.items[0];
    const std::int64_t given = tunables[1].values.items[1];
    const Coefficient coefficients[] = {
        {variant.name, tunables[0].name, value, {200, 200, 200, 200, 200, 200, 200, 200}, given}};
    family.calibration = coefficients;
    problem.family = &family;
    const Correction correction(problem, variant, traits);
    Config config;
    config[0] = value;
    config[1] = given;
    CHECK(correction.factor(config) == doctest::Approx(std::exp(0.2)));
    config[1] = tunables[1].values.items[0];
    CHECK(correction.factor(config) == 1);
    CHECK(correction.factor(0, value, given) == doctest::Approx(std::exp(0.2)));
    CHECK(correction.factor(0, value, tunables[1].values.items[0]) == 1);
}

TEST_CASE("every coefficient of this build names a variant, a tunable and a value of its family, once") {
    int coefficients = 0;
    for (const Family* family : families()) {
        std::set<std::tuple<std::string_view, std::string_view, std::int64_t, std::int64_t>> seen;
        for (const Coefficient& coefficient : family->calibration) {
            CAPTURE(family->name);
            CAPTURE(coefficient.variant);
            CAPTURE(coefficient.tunable);
            if (coefficient.variant.empty()) {
                CHECK(&coefficient == &family->calibration.front());
                continue;
            }
            const Variant* variant = find_variant(*family, coefficient.variant);
            REQUIRE(variant != nullptr);
            CHECK(
                seen.insert({coefficient.variant, coefficient.tunable, coefficient.value, coefficient.given})
                    .second);
            ++coefficients;
            if (coefficient.tunable.empty()) continue;
            const auto tunable = std::ranges::find(variant->tunables, coefficient.tunable, &Tunable::name);
            REQUIRE(tunable != variant->tunables.end());
            const auto values = tunable->values.span();
            CHECK(std::ranges::find(values, coefficient.value) != values.end());
            const auto other = std::ranges::find(variant->tunables, tunable->read_with, &Tunable::name);
            const bool is_alone = other == variant->tunables.end();
            CHECK(is_alone == tunable->read_with.empty());
            const auto given = is_alone ? std::span<const std::int64_t>() : other->values.span();
            CHECK((is_alone ? coefficient.given == 0
                            : std::ranges::find(given, coefficient.given) != given.end()));
        }
    }
    CHECK(coefficients > 100);
}

TEST_CASE("a space is ranked by corrected predictions") {
    const Problem problem = row_problem(512);
    const DeviceTraits traits = hopper();
    const std::vector<RankedCandidate> space = ranked_space(problem, traits);
    REQUIRE(!space.empty());
    CHECK(std::ranges::is_sorted(space, {}, &RankedCandidate::predicted_us));
    for (std::size_t i = 0; i < space.size(); i += space.size() / 50 + 1) {
        CHECK(space[i].predicted_us == doctest::Approx(predicted_us(problem, space[i].candidate, traits)));
    }
}

}  // namespace
}  // namespace hone
