#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernel_templates/catalog.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/quantized_linear/rank.h"
#include "kernel_templates/quantized_linear/ring/plan.h"
#include "kernel_templates/quantized_linear/variants.h"
#include "kernel_templates/space.h"
#include "tests/kernel_templates/drawn_cases.h"

using namespace hone;
using namespace hone::quantized_linear;

namespace {

const std::vector<std::string> shapes{
    "dtype=bf16 format=w4a16 group=128 in=4096 out=28672",
    "dtype=fp16 format=w4a16 group=64 zeros=yes in=4096 out=4096",
    "dtype=bf16 format=w4a16 group=32 in=14336 out=4096 residual=yes",
    "dtype=bf16 format=w4a16 in=4096 out=1000 bias=yes",
    "dtype=bf16 format=w4a16 group=128 in=4096 out=14336 gated=yes activation=silu",
    "dtype=bf16 format=w8a16 in=4096 out=28672",
    "dtype=fp16 format=w8a16 in=1040 out=70 norm=yes",
};
const std::vector<std::int64_t> token_counts{1, 16, 33};

/// Behind that of a norm, where there is one.
const Launch& product_of(const Plan& plan) {
    return plan.launches[static_cast<std::size_t>(plan.launch_count - 1)];
}

/// Calls visit(case) for every `step`-th allowed config of all problems.
template <class Visit>
void for_cases(std::size_t step, Visit visit) {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    for (const std::string& shape : shapes) {
        for (const std::int64_t tokens : token_counts) {
            const Problem problem =
                *parse_problem("quantized_linear " + shape + " tokens=" + std::to_string(tokens));
            const std::vector<Config>& configs = test::space_on_h100(problem, ring);
            for (std::size_t i = 0; i < configs.size(); i += step) {
                const QuantizedProblem p(problem);
                INFO(to_string(problem) << " | " << to_string(Candidate{&ring, configs[i]}));
                visit(problem, p, configs[i], geometry(p, values_of<RingConfig>(configs[i])), h100);
            }
        }
    }
}

}  // namespace

TEST_CASE("ring offers no fallback where wgmma_w16's is predicted to be faster") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    int of_ring = 0;
    int of_wgmma = 0;
    for (const std::string& shape : shapes) {
        for (const std::int64_t tokens : {16, 32, 48, 64}) {
            const Problem problem =
                *parse_problem("quantized_linear " + shape + " tokens=" + std::to_string(tokens));
            INFO(to_string(problem));
            const auto mine = ring.fallback(problem, h100);
            const auto other = wgmma_w16.fallback(problem, h100);
            ++(mine ? of_ring : of_wgmma);
            if (mine && other)
                CHECK(ring.predict_us(problem, *mine, h100) <= wgmma_w16.predict_us(problem, *other, h100));
        }
    }
    CHECK(of_ring > 0);
    CHECK(of_wgmma > 0);
}

TEST_CASE("ring: packed weights and up to 64 tokens have configs, others have none") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    const auto count = [&](const std::string& text) {
        const Problem problem = *parse_problem("quantized_linear " + text);
        const std::size_t configs = enumerate(problem, ring, h100).size();
        if (configs == 0) CHECK(!ring.fallback(problem, h100));
        if (configs > 0 && !ring.fallback(problem, h100))
            CHECK((wgmma_w16.fallback(problem, h100) || is_for_walk(QuantizedProblem(problem), h100)));
        CHECK(configs <= 3000);
        return configs;
    };
    for (const std::int64_t tokens : {1, 13, 32}) {
        const std::string with_tokens = " tokens=" + std::to_string(tokens);
        for (const std::string& shape : shapes) CHECK(count(shape + with_tokens) > 0);
        CHECK(count("dtype=bf16 format=w8a8 in=4096 out=4096" + with_tokens) == 0);
        CHECK(count("dtype=bf16 format=fp8 in=4096 out=4096" + with_tokens) == 0);
    }
    CHECK(count(shapes[0] + " tokens=64") > 0);
    CHECK(count(shapes[0] + " tokens=65") == 0);
    CHECK(count("dtype=bf16 format=w8a16 in=1000 out=4096 tokens=1") == 0);
}

TEST_CASE("ring: the plan launches whole clusters, which fit as often as the config says") {
    for_cases(1, [](const Problem& problem, const QuantizedProblem& p, const Config& config,
                    const RingGeometry& g, const DeviceTraits& traits) {
        const Plan plan = ring.plan(problem, config, traits);
        const Launch& launch = product_of(plan);
        REQUIRE(plan.launch_count == (p.norm ? 2 : 1));
        REQUIRE(launch.grid.x % launch.cluster.x == 0);
        REQUIRE(launch.cluster.x == static_cast<std::uint32_t>(g.cluster_k));
        REQUIRE(launch.block.x == static_cast<std::uint32_t>(g.threads()));
        REQUIRE(launch.shared_bytes == static_cast<std::uint32_t>(g.shared_bytes()));
        REQUIRE(launch.grid.x / launch.cluster.x <= ceil_div(p.out, g.rows));
        REQUIRE(g.tokens >= p.tokens);
        REQUIRE(plan.tensor_maps[0].box[1] == g.tokens);
        // What copies and matrices want of addresses in shared memory.
        REQUIRE(g.ring_at() % 1024 == 0);
        REQUIRE(g.stage_bytes() % 16 == 0);
        REQUIRE(g.scales_at() % 16 == 0);
        REQUIRE(g.zeros_at() % 16 == 0);
        REQUIRE(g.inbox_at() % 16 == 0);
        REQUIRE(g.barriers_at() % 8 == 0);
        const int stage_end = g.zeros_at() + g.tile_blocks() * g.row_zero_bytes();
        REQUIRE(stage_end <= g.stage_bytes());
        if (g.x_streams) {  // boxes stand in front of the codes, at multiples of 1024
            REQUIRE(g.stage_bytes() % 1024 == 0);
            REQUIRE(g.stage_bytes() - stage_end < 1024);
            REQUIRE(g.codes_at() == g.stage_columns / block_columns * g.box_bytes());
            REQUIRE(g.ring_at() == 0);
        } else {
            REQUIRE(stage_end == g.stage_bytes());
            REQUIRE(g.ring_at() == g.x_bytes());
        }
    });
}

TEST_CASE("ring: blocks, stages and warps take every row and column once") {
    for_cases(97, [](const Problem& problem, const QuantizedProblem& p, const Config& config,
                     const RingGeometry& g, const DeviceTraits& traits) {
        const int clusters =
            static_cast<int>(product_of(ring.plan(problem, config, traits)).grid.x) / g.cluster_k;
        const int tiles = static_cast<int>(ceil_div(p.out, g.rows));
        std::map<std::pair<int, int>, int> taken;  // times, by tile and unit
        for (int cluster = 0; cluster < clusters; ++cluster) {
            for (int rank = 0; rank < g.cluster_k; ++rank) {
                const int count = g.first_unit(rank + 1) - g.first_unit(rank);
                REQUIRE(count >= 1);
                REQUIRE(count <= g.most_units());
                for (int tile = cluster; tile < tiles; tile += clusters) {
                    for (int unit = 0; unit < count; ++unit) ++taken[{tile, g.first_unit(rank) + unit}];
                }
            }
        }
        REQUIRE(taken.size() == static_cast<std::size_t>(tiles) * static_cast<std::size_t>(g.units()));
        REQUIRE(std::ranges::all_of(taken, [](const auto& place) { return place.second == 1; }));
        REQUIRE(std::int64_t{g.units()} * g.unit_columns() >= p.in);

        // Within a stage: 16 rows of the tile x a unit.
        std::map<std::pair<int, int>, int> multiplied;
        for (int warp = 0; warp < g.compute_warps(); ++warp) {
            for (int f = 0; f < g.warp_rows / 16; ++f) {
                for (int unit = warp / g.row_warps(); unit < g.stage_units(); unit += g.k_warps)
                    ++multiplied[{warp % g.row_warps() * g.warp_rows / 16 + f, unit}];
            }
        }
        REQUIRE(multiplied.size() == static_cast<std::size_t>(g.products * g.rows / 16) *
                                         static_cast<std::size_t>(g.stage_units()));
        REQUIRE(std::ranges::all_of(multiplied, [](const auto& place) { return place.second == 1; }));
    });
}

TEST_CASE("ring: every sum has a place of its own in an inbox, and fills the inboxes") {
    for_cases(97, [](const Problem&, const QuantizedProblem&, const Config&, const RingGeometry& g,
                     const DeviceTraits&) {
        std::set<std::tuple<int, int>> places;  // owner, offset of 512 bytes
        for (int source = 0; source < g.sources(); ++source) {
            for (int product = 0; product < g.products; ++product) {
                for (int result = 0; result < g.fragments(); ++result) {
                    const int offset =
                        result / g.cluster_k * g.place_bytes() + (product * g.sources() + source) * 512;
                    REQUIRE(offset + 512 <= g.inbox_bytes());
                    REQUIRE(places.emplace(result % g.cluster_k, offset).second);
                }
            }
        }
        for (int rank = 0; rank < g.cluster_k; ++rank) {
            REQUIRE(g.owned(rank) >= 1);  // who waits for nothing would run ahead
            const auto mine =
                std::ranges::count_if(places, [&](const auto& place) { return std::get<0>(place) == rank; });
            REQUIRE(mine * 512 == std::int64_t{g.owned(rank)} * g.place_bytes());
        }
    });
}

TEST_CASE("ring: a lane's words hold what the tensor cores take as its left operand") {
    for (int row = 0; row < 64; ++row) {
        for (int column = 0; column < 64; ++column) {
            // mma m16n8k16: word i of lane 4 g + t has rows g or g + 8 (i odd), columns 2t or 2t + 8 (i > 1).
            const int lane = row % 8 * 4 + column % 8 / 2;
            const int word = row / 8 % 2 + column / 8 % 2 * 2;
            const int high = column % 2;
            const CodePlace w4 = place_w4(row, column, 64);
            const int code = static_cast<int>(w4.byte) % 4 * 8 + w4.bit;
            CHECK(w4.byte / 4 * 4 == (row / 16 * 32 + lane) * 16 + column / 16 * 4);
            CHECK(code == 4 * word + 16 * high);
            const CodePlace w8 = place_w8(row, column, 64);
            CHECK(w8.byte / 4 * 4 ==
                  column / 32 * 2048 + (row / 16 * 32 + lane) * 16 + column % 32 / 16 * 8 + word / 2 * 4);
            CHECK(w8.byte % 4 == word % 2 + 2 * high);
        }
        CHECK(scale_place(row, 0, 1) == row / 16 * 16 + row % 8 * 2 + row / 8 % 2);
    }
}
