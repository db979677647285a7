#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "kernel_templates/catalog.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/quantized_linear/ring_w8/plan.h"
#include "kernel_templates/quantized_linear/variants.h"
#include "kernel_templates/space.h"
#include "tests/kernel_templates/drawn_cases.h"

using namespace hone;
using namespace hone::quantized_linear;

namespace {

const std::vector<std::string> shapes{
    "dtype=bf16 format=fp8 in=4096 out=4096",
    "dtype=bf16 format=fp8 in=14336 out=4096 residual=yes",
    "dtype=bf16 format=fp8 quantized_x=yes in=4096 out=14336 gated=yes activation=silu",
    "dtype=fp16 format=fp8 group=128 in=4096 out=6144",
    "dtype=bf16 format=w8a8 in=28672 out=8192",
    "dtype=bf16 format=w8a8 norm=yes in=1040 out=208",
};

Problem problem_of(const std::string& text) { return *parse_problem("quantized_linear " + text); }

template <class Visit>
void for_cases(Visit visit) {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    test::for_every_config(ring_w8, "quantized_linear", shapes, {1, 3, 8, 16},
                           [&](const Problem& problem, const Config& config) {
                               const QuantizedProblem p(problem);
                               const RingW8Config c = values_of<RingW8Config>(config);
                               visit(p, c, geometry(p, c), ring_w8.plan(problem, config, h100));
                           });
}

}  // namespace

TEST_CASE("ring_w8: few tokens of codes have configs and a fallback on sm_90a, others have none") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    const auto count = [&](const std::string& text) {
        const Problem problem = problem_of(text);
        const std::size_t configs = enumerate(problem, ring_w8, h100).size();
        CHECK(ring_w8.fallback(problem, h100).has_value() == (configs > 0));
        return configs;
    };
    for (const std::string& shape : shapes) {
        INFO(shape);
        for (const char* tokens : {" tokens=1", " tokens=2", " tokens=7", " tokens=16"})
            CHECK(count(shape + tokens) > 0);
        CHECK(count(shape + " tokens=17") == 0);
    }
    CHECK(count("dtype=bf16 format=fp8 in=1024 out=1000 tokens=1") == 0);
    CHECK(count("dtype=bf16 format=fp8 in=1000 out=1024 tokens=1") == 0);
    CHECK(count("dtype=bf16 format=w8a8 in=131072 out=4096 tokens=1") == 0);
    CHECK(count("dtype=bf16 format=w8a16 in=4096 out=4096 tokens=1") == 0);
    CHECK_FALSE(runs_on(ring_w8, *representative_device({10, 0, true})));
}

TEST_CASE("ring_w8: what a model's layers run at few tokens takes it where nothing is known") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    for (const char* tokens : {" tokens=1", " tokens=16"}) {
        for (const char* shape : {"dtype=bf16 format=fp8 in=4096 out=4096",
                                  "dtype=bf16 format=w8a8 in=14336 out=4096 residual=yes",
                                  "dtype=bf16 format=fp8 quantized_x=yes in=4096 out=6144"})
            CHECK(fallback(problem_of(std::string(shape) + tokens), h100)->variant == &ring_w8);
    }
}

TEST_CASE("ring_w8: a stage is the same warpgroup's in every round, and steps cover every column") {
    for_cases([](const QuantizedProblem& p, const RingW8Config& c, const RingW8Geometry& g, const Plan&) {
        REQUIRE(c.stages % c.consumers == 0);
        REQUIRE(g.columns() >= p.in);
        REQUIRE(g.columns() - p.in < g.stage_columns);
        REQUIRE(g.tiles() * g.rows >= p.out);
        // Stages of consecutive steps over several tiles, as a warpgroup counts them.
        for (int warpgroup = 0; warpgroup < g.consumers; ++warpgroup) {
            int stage = warpgroup;
            for (int step = warpgroup; step < 3 * g.steps(); step += g.consumers) {
                REQUIRE(stage == step % g.stages);
                stage = (stage + g.consumers) % g.stages;
            }
        }
    });
}

TEST_CASE("ring_w8: shares are even, and all of a block is in shared memory, aligned") {
    for_cases(
        [](const QuantizedProblem& p, const RingW8Config& c, const RingW8Geometry& g, const Plan& plan) {
            const DeviceTraits h100 = *representative_device({9, 0, true});
            const Launch& launch = plan.launches[static_cast<std::size_t>(plan.launch_count - 1)];
            REQUIRE(plan.launch_count == (p.quantizes_x() && c.x_place != x_made ? 2 : 1));
            REQUIRE(launch.grid.x <= static_cast<std::uint32_t>(h100.sm_count));
            REQUIRE(launch.grid.x * rounds(p, c, h100) >= g.tiles());
            REQUIRE(launch.grid.x * (rounds(p, c, h100) - 1) < g.tiles());
            REQUIRE(launch.shared_bytes == static_cast<std::uint32_t>(g.shared_bytes()));
            REQUIRE(launch.shared_bytes <= h100.max_shared_bytes_per_block);
            REQUIRE(g.stage_bytes() % 1024 == 0);
            REQUIRE(g.panel_bytes() / g.products % 1024 == 0);
            REQUIRE(g.x_at() % 16 == 0);
            REQUIRE(g.scales_at() % 16 == 0);
            REQUIRE(g.partials_at() % 4 == 0);
            REQUIRE(g.barriers_at() % 8 == 0);
        });
}

TEST_CASE("ring_w8: maps have a tile's rows, and x where it passes through the ring") {
    for_cases(
        [](const QuantizedProblem& p, const RingW8Config& c, const RingW8Geometry& g, const Plan& plan) {
            REQUIRE(plan.tensor_map_count == 3);
            REQUIRE((plan.tensor_maps[1].same_as == 0) == !p.gated);
            REQUIRE((plan.tensor_maps[2].same_as == 0) == (c.x_place != x_streams));
            for (int i = 0; i < 3; ++i) {
                const TensorMap& map = plan.tensor_maps[static_cast<std::size_t>(i)];
                const bool is_x = i == 2 && map.same_as != 0;
                REQUIRE(map.extents[0] == p.in);
                REQUIRE(map.extents[1] == (is_x ? p.tokens : p.out));
                REQUIRE(map.box[0] == 128);
                REQUIRE(map.box[1] == (is_x ? g.n() : g.rows));
                REQUIRE(map.swizzle_bytes == 128);
            }
        });
}

TEST_CASE("ring_w8: chunks of x stand where a right operand without swizzle is read") {
    for (const int tokens : {1, 2, 4, 8, 16}) {
        const RingW8Geometry g{.products = 1,
                               .in = 512,
                               .out = 64,
                               .blocks_scaled = false,
                               .tokens = tokens,
                               .rows = 64,
                               .consumers = 1,
                               .stage_columns = 256,
                               .stages = 4,
                               .x_streams = false};
        // Matrices of 8 tokens x 16 codes: the next columns' `tokens` chunks further, the next tokens' 8.
        for (int first = 0; first < g.columns() / RingW8Geometry::chunk; first += 2) {
            for (int token = 0; token < g.n(); ++token) {
                for (int half = 0; half < 2; ++half) {
                    const int read = first * tokens + half * tokens + token / 8 * 8 + token % 8;
                    if (token < tokens) CHECK(read == (first + half) * tokens + token);
                    CHECK((read + 1) * RingW8Geometry::chunk <= g.x_bytes());
                }
            }
        }
    }
}

TEST_CASE("ring_w8: the sums that a warp writes together fall into distinct banks") {
    for_cases([](const QuantizedProblem&, const RingW8Config&, const RingW8Geometry& g, const Plan&) {
        std::set<int> banks;
        for (int lane = 0; lane < 32; ++lane) banks.insert((lane % 4 * 2 * g.pitch() + lane / 4) % 32);
        REQUIRE(banks.size() == 32);
    });
}
