#include <doctest/doctest.h>

#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/launches.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/kit/typed.h"
#include "kernel_templates/space.h"

namespace hone {
namespace {

struct TwoTunables {
    std::int64_t threads = 64;
    std::int64_t rows = 1;

    friend bool operator==(const TwoTunables&, const TwoTunables&) = default;
};

constexpr auto tunables = tunables_of({
    tunable<&TwoTunables::threads>("threads a block", {64, 128}),
    tunable<&TwoTunables::rows>("rows of a block", {1, 2, 4}),
});

TEST_CASE("a tunable has the name and the place of its member") {
    REQUIRE(tunables.size() == 2);
    CHECK(tunables[0].name == "threads");
    CHECK(tunables[1].name == "rows");
    CHECK(tunables[1].meaning == "rows of a block");
    CHECK(index_of(&TwoTunables::rows) == 1);
    const Config config = config_of(TwoTunables{.threads = 128, .rows = 4});
    CHECK(config.values[0] == 128);
    CHECK(config.values[1] == 4);
    CHECK(values_of<TwoTunables>(config) == TwoTunables{.threads = 128, .rows = 4});
}

TEST_CASE("combinations: each start with all values of the varied tunables, the others as they were") {
    const TwoTunables first{.threads = 7, .rows = 2};  // no value of the tunable: it is not asked
    const TwoTunables second{.threads = 9, .rows = 4};
    const auto all = combinations({first, second}, tunables, {&TwoTunables::rows});
    REQUIRE(all.size() == 6);
    for (std::size_t i = 0; i < all.size(); ++i) {
        CHECK(all[i].threads == (i < 3 ? 7 : 9));
        CHECK(all[i].rows == tunables[1].values.items[i % 3]);
    }
    CHECK(combinations({first}, tunables, {}) == std::vector<TwoTunables>{first});
    CHECK(combinations({first, second}, tunables, {&TwoTunables::rows, &TwoTunables::threads}).size() == 12);
}

TEST_CASE("a rule gets what it asks for, in any order") {
    constexpr Constraint constraint =
        rule("few threads on small devices", [](const DeviceTraits& traits, const TwoTunables& c) {
            return c.threads <= traits.max_threads_per_sm;
        });
    CHECK(constraint.reason == "few threads on small devices");
    DeviceTraits traits;
    traits.max_threads_per_sm = 100;
    CHECK(constraint.holds({}, config_of(TwoTunables{.threads = 64}), traits));
    CHECK_FALSE(constraint.holds({}, config_of(TwoTunables{.threads = 128}), traits));
}

TEST_CASE(
    "a space has the declared configs that every rule allows, and counts the others by their first broken "
    "rule") {
    static constexpr Constraint constraints[] = {
        rule("few rows", [](const TwoTunables& c) { return c.rows < 4; }),
        rule("large devices", [](const DeviceTraits& traits) { return traits.max_threads_per_sm > 100; }),
        rule("few elements", [](const TwoTunables& c) { return c.threads * c.rows <= 256; }),
        rule("not 128 threads", through(&TwoTunables::threads),
             [](const TwoTunables& c) { return c.threads != 128; }),
    };
    static constexpr auto more = tunables_of({
        tunable<&TwoTunables::threads>("threads a block", {64, 128, 256}),
        tunable<&TwoTunables::rows>("rows of a block", {1, 2, 4}),
    });
    CHECK(constraints[0].decided_by == max_tunables);
    CHECK(constraints[1].decided_by == 0);
    CHECK(constraints[3].decided_by == 1);
    const Variant variant{.tunables = more, .constraints = constraints};
    DeviceTraits traits = *representative_device({9, 0, true});
    const std::vector<Config> all{config_of(TwoTunables{64, 1}), config_of(TwoTunables{64, 2}),
                                  config_of(TwoTunables{256, 1})};
    CHECK(enumerate({}, variant, traits) == all);
    CHECK(count_space({}, variant, traits).rejected_by == std::vector<std::size_t>{3, 0, 1, 2, 0});
    traits.max_threads_per_sm = 100;
    CHECK(enumerate({}, variant, traits).empty());
    CHECK(count_space({}, variant, traits).rejected_by == std::vector<std::size_t>{3, 6, 0, 0, 0});
    traits = *representative_device({7, 5, false});
    Variant newer = variant;
    newer.min_arch = {8, 0, false};
    CHECK(enumerate({}, newer, traits).empty());
    CHECK(count_space({}, newer, traits).rejected_by == std::vector<std::size_t>{0, 0, 0, 0, 9});
}

TEST_CASE("a launch takes a plan's value wherever its kernel has the argument") {
    static constexpr KernelArg args[] = {pointer_arg(3, "x"), scalar_arg(3, "n"), pointer_arg(3, "again")};
    static constexpr Kernel kernel{"k", args};
    Launch first = launch(kernel, grid_of(5), 128);
    substitute(first, pointer_arg(3, ""), 1);
    REQUIRE(first.substitution_count == 2);
    CHECK(first.substitutions[0] == Substitution{.arg = 0, .value = 1});
    CHECK(first.substitutions[1] == Substitution{.arg = 2, .value = 1});
    CHECK(first.grid == Dim3{5, 1, 1});
}

}  // namespace
}  // namespace hone
