#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernel_templates/catalog.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/quantized_linear/rank.h"
#include "kernel_templates/quantized_linear/stream/plan.h"
#include "kernel_templates/quantized_linear/variants.h"
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
};

template <class Visit>
void for_cases(Visit visit) {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    test::for_every_config(stream, "quantized_linear", shapes, {1, 3, 4},
                           [&](const Problem& problem, const Config& config) {
                               const QuantizedProblem p(problem);
                               visit(problem, p, config, geometry(p, values_of<StreamConfig>(config)), h100);
                           });
}

}  // namespace

TEST_CASE("stream: packed weights and up to 4 tokens have configs and a fallback, others have none") {
    for (const Arch arch : {Arch{9, 0, true}, Arch{8, 0, false}}) {
        const DeviceTraits traits = *representative_device(arch);
        const auto count = [&](const std::string& text) {
            const Problem problem = *parse_problem("quantized_linear " + text);
            const std::size_t configs = enumerate(problem, stream, traits).size();
            const QuantizedProblem p(problem);
            const bool is_others = is_for_walk(p, traits) || is_for_ring(p, traits);
            CHECK(stream.fallback(problem, traits).has_value() == (configs > 0 && !is_others));
            return configs;
        };
        for (const std::string& shape : shapes) {
            CHECK(count(shape + " tokens=1") > 0);
            CHECK(count(shape + " tokens=5") == 0);
        }
        CHECK(count("dtype=bf16 format=w8a8 in=4096 out=4096 tokens=1") == 0);
        CHECK(count("dtype=bf16 format=w8a16 in=1000 out=4096 tokens=1") == 0);
    }
}

TEST_CASE("stream: blocks have all rows, and shared memory as often as they are resident") {
    for_cases([](const Problem& problem, const QuantizedProblem& p, const Config& config,
                 const StreamGeometry& g, const DeviceTraits& traits) {
        const Plan plan = stream.plan(problem, config, traits);
        const Launch& launch = plan.launches[static_cast<std::size_t>(plan.launch_count - 1)];
        REQUIRE(plan.launch_count == (p.norm && !folds_norm(p) ? 2 : 1));
        REQUIRE(launch.block.x == static_cast<std::uint32_t>(g.threads()));
        REQUIRE(launch.grid.x == static_cast<std::uint32_t>(ceil_div(p.out, g.block_rows())));
        REQUIRE(launch.shared_bytes == static_cast<std::uint32_t>(g.shared_bytes()));
        REQUIRE(g.shared_bytes() <= traits.max_shared_bytes_per_block);
        REQUIRE(g.tokens >= p.tokens);
        // Rows of x begin where 16 bytes may be copied, and 8 of them fall into distinct banks.
        REQUIRE(g.x_pitch() % 128 == 16);
        REQUIRE(g.zeros_at() % 16 == 0);
        REQUIRE(g.partials_at() % 16 == 0);
    });
}

TEST_CASE("stream: warps take every panel of every row once, and each sum has a place of its own") {
    for_cases([](const Problem&, const QuantizedProblem& p, const Config&, const StreamGeometry& g,
                 const DeviceTraits&) {
        std::set<int> panels;
        for (int turn = 0; turn < g.turns(); ++turn) {
            for (int k = 0; k < g.k_warps; ++k) {
                for (int u = 0; u < g.unroll; ++u) {
                    const int panel = turn * g.turn() + k * g.unroll + u;
                    REQUIRE(panels.insert(panel).second);
                }
            }
        }
        REQUIRE(static_cast<int>(panels.size()) >= g.panels());
        REQUIRE(std::int64_t{g.panels()} * block_columns >= p.in);
        // The last turn has something.
        REQUIRE((g.turns() - 1) * g.turn() < g.panels());
        REQUIRE(g.partial_floats() >= g.k_warps * g.products * g.tokens * g.block_rows());
    });
}
