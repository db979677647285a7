#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernel_templates/calibration.h"
#include "kernel_templates/catalog.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/quantized_linear/variants.h"
#include "kernel_templates/quantized_linear/walk/plan.h"
#include "kernel_templates/space.h"
#include "tests/kernel_templates/drawn_cases.h"

using namespace hone;
using namespace hone::quantized_linear;

namespace {

const std::vector<std::string> shapes{
    "dtype=bf16 format=w4a16 group=128 in=4096 out=28672",
    "dtype=fp16 format=w4a16 group=64 zeros=yes in=11008 out=4096",
    "dtype=bf16 format=w4a16 group=32 in=14336 out=4096 residual=yes",
    "dtype=bf16 format=w4a16 in=4096 out=1000 bias=yes",
    "dtype=bf16 format=w4a16 group=128 in=4096 out=14336 gated=yes activation=silu",
    "dtype=bf16 format=w8a16 in=1040 out=70 norm=yes",
    "dtype=bf16 format=w8a8 in=4096 out=4096",
    "dtype=bf16 format=w8a8 in=1040 out=4096 norm=yes",
    "dtype=bf16 format=fp8 quantized_x=yes in=8192 out=4096",
    "dtype=bf16 format=fp8 group=128 in=4096 out=28672",
};

template <class Visit>
void for_cases(Visit visit) {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    test::for_every_config(walk, "quantized_linear", shapes, {1, 3, 8},
                           [&](const Problem& problem, const Config& config) {
                               const QuantizedProblem p(problem);
                               visit(problem, p, config, geometry(p, values_of<WalkConfig>(config)), h100);
                           });
}

}  // namespace

TEST_CASE("walk: few tokens of every format have configs and a fallback on sm_90, others have none") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    const auto count = [](const std::string& text, const DeviceTraits& traits) {
        const Problem problem = *parse_problem("quantized_linear " + text);
        const std::size_t configs = enumerate(problem, walk, traits).size();
        CHECK(walk.fallback(problem, traits).has_value() == (configs > 0));
        return configs;
    };
    for (const std::string& shape : shapes) {
        INFO(shape);
        const bool packed = shape.find("a16") != std::string::npos;
        CHECK(count(shape + " tokens=1", h100) > 0);
        CHECK(count(shape + " tokens=4", h100) > 0);
        CHECK((count(shape + " tokens=8", h100) > 0) == !packed);
        CHECK(count(shape + " tokens=9", h100) == 0);
    }
    CHECK(count("dtype=bf16 format=fp8 in=1024 out=1000 tokens=1", h100) == 0);
    CHECK(count("dtype=bf16 format=w8a16 in=1000 out=4096 tokens=1", h100) == 0);
    CHECK_FALSE(runs_on(walk, *representative_device({8, 0, false})));
}

TEST_CASE("walk: blocks are resident all at once, and walk over every group of rows once") {
    for_cases([](const Problem& problem, const QuantizedProblem& p, const Config& config,
                 const WalkGeometry& g, const DeviceTraits& traits) {
        const Plan plan = walk.plan(problem, config, traits);
        const Launch& launch = plan.launches[static_cast<std::size_t>(plan.launch_count - 1)];
        const WalkConfig c = values_of<WalkConfig>(config);
        REQUIRE(plan.launch_count == (p.quantizes_x() ? 2 : 1));
        REQUIRE(launch.block.x == static_cast<std::uint32_t>(g.threads()));
        REQUIRE(launch.grid.x <= static_cast<std::uint32_t>(traits.sm_count * c.residents));
        REQUIRE(launch.shared_bytes == static_cast<std::uint32_t>(g.shared_bytes()));
        REQUIRE(launch.shared_bytes <= traits.max_shared_bytes_per_block);
        REQUIRE(g.groups() * WalkGeometry::rows >= p.out);

        // What the kernel's Schedule does: together the blocks take each group once, none of them none, and
        // a block that takes several finds all of them at the same place of their blocks of 64 rows.
        const int step = static_cast<int>(launch.grid.x);
        int taken = 0;
        for (int first = 0; first < step; ++first) {
            const int groups = (g.groups() - first + step - 1) / step;
            REQUIRE(groups > 0);
            REQUIRE((groups == 1 || step % 4 == 0));
            taken += groups;
        }
        REQUIRE(taken == g.groups());
    });
}

TEST_CASE("walk: the warps take every unit of a row once") {
    for_cases([](const Problem&, const QuantizedProblem& p, const Config&, const WalkGeometry& g,
                 const DeviceTraits&) {
        REQUIRE(g.units() * WalkGeometry::unit_columns >= p.in);
        std::set<int> units;
        for (int turn = 0; turn < g.turns(); ++turn) {
            for (int warp = 0; warp < g.k_warps; ++warp) {
                for (int u = 0; u < g.unroll; ++u)
                    REQUIRE(units.insert(turn * g.turn() + warp * g.unroll + u).second);
            }
        }
        REQUIRE(static_cast<int>(units.size()) >= g.units());
        REQUIRE((g.turns() - 1) * g.turn() < g.units());
    });
}

TEST_CASE(
    "walk: places in shared memory are aligned, and what warps touch together falls into distinct banks") {
    for_cases([](const Problem&, const QuantizedProblem&, const Config&, const WalkGeometry& g,
                 const DeviceTraits&) {
        REQUIRE(g.x_pitch() % 128 == 16);
        REQUIRE(g.zeros_at() % 16 == 0);
        REQUIRE(g.barriers_at() % 8 == 0);
        REQUIRE(g.scales_at() % 8 == 0);
        REQUIRE(g.digit_sums_at() % 8 == 0);
        REQUIRE(g.partials_at() % 16 == 0);
        REQUIRE(g.buffer_floats() >= g.k_warps * g.products * g.columns() * WalkGeometry::rows);
    });
    std::set<int> banks;
    for (int lane = 0; lane < 32; ++lane)
        banks.insert((lane % 4 * 2 * WalkGeometry::partial_pitch + lane / 4) % 32);
    CHECK(banks.size() == 32);
}

TEST_CASE(
    "walk: predicted to be first where memory is faster than what stream can widen, not where it is not") {
    const auto best = [](const Problem& problem, const Variant& variant, const DeviceTraits& traits) {
        double us = 1e9;
        for (const Config& config : enumerate(problem, variant, traits))
            us = std::min(us, predicted_us(problem, {&variant, config}, traits));
        return us;
    };
    const DeviceTraits h100 = *representative_device({9, 0, true});
    DeviceTraits h200 = h100;
    h200.memory_bytes_per_s = 4.8e12;
    const Problem wide =
        *parse_problem("quantized_linear dtype=bf16 format=w4a16 group=128 in=4096 out=28672 tokens=1");
    CHECK(best(wide, walk, h200) < best(wide, stream, h200));
    CHECK(best(wide, walk, h200) < 0.85 * best(wide, walk, h100));
    // What a block does with x before it multiplies counts in small calls.
    const Problem small =
        *parse_problem("quantized_linear dtype=bf16 format=w4a16 group=128 in=4096 out=4096 tokens=1");
    CHECK(best(small, stream, h100) < best(small, walk, h100));
}
