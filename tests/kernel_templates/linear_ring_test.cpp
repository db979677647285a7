#include <set>

#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/linear/ring/plan.h"
#include "kernel_templates/linear/variants.h"
#include "tests/kernel_templates/linear_cases.h"

using namespace hone;
using namespace hone::linear;
using namespace hone::linear_cases;

namespace {

const std::vector<std::string> model_shapes{
    "dtype=bf16 in=4096 out=4096",
    "dtype=bf16 in=14336 out=4096 residual=yes",
    "dtype=bf16 in=4096 out=14336 gated=yes activation=silu",
    "dtype=fp16 in=4096 out=6144 bias=yes",
    "dtype=bf16 in=2048 out=128256",
    "dtype=bf16 norm=yes in=1032 out=203",
};

template <class Visit>
void for_cases(Visit visit, const std::vector<std::string>& shapes = model_shapes) {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    test::for_every_config(ring, "linear", shapes, {1, 3, 8, 16, 50},
                           [&](const Problem& problem, const Config& config) {
                               const LinearProblem p(problem);
                               const auto c = values_of<RingConfig>(config);
                               visit(p, c, geometry(p, c), ring.plan(problem, config, h100));
                           });
}

}  // namespace

TEST_CASE("linear's ring: few tokens of 16 bits have configs on sm_90a, others have none") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    const auto count = [&](const std::string& text) {
        return enumerate(problem_of(text), ring, h100).size();
    };
    for (const std::string& shape : model_shapes) {
        INFO(shape);
        for (const char* tokens : {" tokens=1", " tokens=2", " tokens=7", " tokens=16", " tokens=64"})
            CHECK(count(shape + tokens) > 0);
        CHECK(count(shape + " tokens=65") == 0);
    }
    CHECK(count("dtype=bf16 in=1024 out=1001 tokens=1") > 0);
    CHECK(count("dtype=bf16 in=1028 out=1024 tokens=1") == 0);
    CHECK(count("dtype=fp32 in=1024 out=1024 tokens=1") == 0);
    CHECK_FALSE(runs_on(ring, *representative_device({10, 0, true})));
}

TEST_CASE("linear's ring: a stage is the same warpgroup's in every round, and steps cover every column") {
    for_cases([](const LinearProblem& p, const RingConfig& c, const RingGeometry& g, const Plan&) {
        REQUIRE(c.stages % c.consumers == 0);
        REQUIRE(g.steps() * g.stage_columns >= p.in);
        REQUIRE((g.steps() - 1) * g.stage_columns < p.in);
        REQUIRE(g.tiles() * g.rows >= p.out);
        REQUIRE(g.first_step(0) == 0);
        REQUIRE(g.first_step(g.cluster_k) == g.steps());
        for (int rank = 0; rank < g.cluster_k; ++rank) {
            const int steps = g.first_step(rank + 1) - g.first_step(rank);
            REQUIRE(steps >= g.consumers);
            REQUIRE(steps <= g.most_steps());
        }
        // Stages of consecutive steps over several tiles, as a warpgroup counts them.
        for (int warpgroup = 0; warpgroup < g.consumers; ++warpgroup) {
            int stage = warpgroup;
            for (int step = warpgroup; step < 3 * g.most_steps(); step += g.consumers) {
                REQUIRE(stage == step % g.stages);
                stage = (stage + g.consumers) % g.stages;
            }
        }
    });
}

TEST_CASE("linear's ring: shares are even, and all of a block is in shared memory, aligned") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    for_cases([&](const LinearProblem& p, const RingConfig& c, const RingGeometry& g, const Plan& plan) {
        const Launch& launch = plan.launches[static_cast<std::size_t>(plan.launch_count - 1)];
        REQUIRE(plan.launch_count == (p.norm && !folds_norm(p, c) ? 2 : 1));
        REQUIRE(launch.cluster.x == c.cluster_k);
        REQUIRE(launch.grid.x % c.cluster_k == 0);
        const std::int64_t walkers = launch.grid.x / c.cluster_k;
        REQUIRE(walkers <= places(c, h100));
        REQUIRE(walkers * rounds(p, c, h100) >= g.tiles());
        REQUIRE(walkers * (rounds(p, c, h100) - 1) < g.tiles());
        REQUIRE(walkers <= g.tiles());
        REQUIRE(launch.shared_bytes == static_cast<std::uint32_t>(g.shared_bytes()));
        REQUIRE(launch.shared_bytes <= h100.max_shared_bytes_per_block);
        REQUIRE(g.stage_bytes() % 1024 == 0);
        REQUIRE(g.panel_bytes() / g.products % 1024 == 0);
        REQUIRE(g.stage_x_at() % 1024 == 0);
        REQUIRE(g.barriers_at() % 8 == 0);
        // The last block of rows of the last stage's last panel, from wherever the block's memory starts.
        const int last_panel = (g.stages - 1) * g.stage_bytes() + (g.stage_panels() - 1) * g.panel_bytes();
        REQUIRE(last_panel + g.row_blocks() * 64 * RingGeometry::row_bytes <= g.shared_bytes() - 1024);
    });
}

TEST_CASE("linear's ring: maps have a tile's rows, and x as many as a block has tokens") {
    for_cases([](const LinearProblem& p, const RingConfig&, const RingGeometry& g, const Plan& plan) {
        REQUIRE(plan.tensor_map_count == 3);
        REQUIRE((plan.tensor_maps[1].same_as == 0) == !p.gated);
        for (std::size_t i = 0; i < 3; ++i) {
            const TensorMap& map = plan.tensor_maps[i];
            REQUIRE(map.extents[0] == p.in);
            REQUIRE(map.extents[1] == (i == 2 ? p.tokens : p.out));
            REQUIRE(map.box[0] == RingGeometry::panel_columns);
            REQUIRE(map.box[1] == (i == 2 ? g.tokens : g.rows));
            REQUIRE(map.swizzle_bytes == 128);
        }
    });
}

TEST_CASE("linear's ring: rows of a tile and of x stand where the tensor cores read them") {
    for_cases([seen = std::set<std::vector<int>>()](const LinearProblem& p, const RingConfig&,
                                                    const RingGeometry& g, const Plan&) mutable {
        if (!seen.insert({g.products, g.rows, g.n(), g.stage_panels()}).second) return;
        SharedBytes stage;
        for (int panel = 0; panel < g.stage_panels(); ++panel) {
            copy_box(stage, panel * g.panel_bytes(), 1, g.rows);
            if (p.gated) copy_box(stage, panel * g.panel_bytes() + g.panel_bytes() / 2, 2, g.rows);
            copy_box(stage, g.stage_x_at() + panel * g.x_panel_bytes(), 0, g.n());
        }
        for (int panel = 0; panel < g.stage_panels(); ++panel) {
            for (int row = 0; row < g.panel_rows(); ++row)
                REQUIRE(read_operand(stage, panel * g.panel_bytes(), row, 1, 3) ==
                        Place{row < g.rows ? 1 : 2, row % g.rows, 19});
            for (int token = 0; token < g.n(); ++token)
                REQUIRE(read_operand(stage, g.stage_x_at() + panel * g.x_panel_bytes(), token, 3, 5) ==
                        Place{0, token, 53});
        }
    });
}

TEST_CASE("linear's ring: a cluster's blocks own all rows, each its place in one inbox") {
    for_cases([](const LinearProblem& p, const RingConfig&, const RingGeometry& g, const Plan&) {
        if (g.cluster_k == 1) return;
        REQUIRE(g.owned_rows() * g.cluster_k == g.rows);
        REQUIRE(p.products() * g.owned_rows() <= g.pitch());
        REQUIRE(g.inbox_bytes() <= g.inbox_words() * 4);
    });
}

TEST_CASE("linear's ring: the sums that a warp writes together fall into distinct banks") {
    for_cases([](const LinearProblem&, const RingConfig&, const RingGeometry& g, const Plan&) {
        std::set<int> banks;
        for (int lane = 0; lane < 32; ++lane) banks.insert((lane % 4 * 2 * g.pitch() + lane / 4) % 32);
        REQUIRE(banks.size() == 32);
    });
}

TEST_CASE("linear's ring: weights in front of a norm that is part of the products are all early") {
    const DeviceTraits h200 = *representative_device({9, 0, true});
    for (const int tokens : {1, 8, 16}) {
        const Problem problem =
            problem_of("dtype=bf16 norm=yes in=4096 out=6144 tokens=" + std::to_string(tokens));
        const LinearProblem p(problem);
        for (const Config& config : enumerate(problem, ring, h200)) {
            const auto c = values_of<RingConfig>(config);
            if (folds_norm(p, c) && c.programmatic != 0) CHECK(c.early == 2);
        }
    }
}

TEST_CASE("linear's ring: a warp that brings x is never two rounds of a stage ahead of who multiplies") {
    // A barrier tells two phases apart. In front of step i a warp waits until step i - stages is given back,
    // and passes too early where i - 2 * stages is not. Of that it knows by its own steps before: each waited
    // for a step that came `stages` earlier, and a warpgroup gives its steps back in their order.
    const auto knows = [](int step, int stages, int consumers) {
        const int must_be_over = step - 2 * stages;
        for (int own = step - RingGeometry::finishers; own >= 0; own -= RingGeometry::finishers) {
            const int over = own - stages;
            if (over >= must_be_over && (over - must_be_over) % consumers == 0) return true;
        }
        return false;
    };
    std::set<int> folding;
    const auto check = [&](const LinearProblem& p, const RingConfig& c, const RingGeometry& g, const Plan&) {
        if (!folds_norm(p, c)) return;
        folding.insert(g.stages);
        for (int step = 2 * g.stages; step < 6 * g.stages; ++step)
            REQUIRE_MESSAGE(knows(step, g.stages, g.consumers), g.stages << " stages, " << g.consumers);
    };
    for_cases(check, {"dtype=bf16 norm=yes in=4096 out=6144"});
    CHECK(folding.size() > 3);
}

TEST_CASE("linear's ring: its default has a norm among the products with few tokens, in front of many") {
    const DeviceTraits h200 = *representative_device({9, 0, true});
    const auto folds = [&](int tokens) {
        const Problem problem =
            problem_of("dtype=bf16 norm=yes in=4096 out=6144 tokens=" + std::to_string(tokens));
        const std::optional<Config> config = ring.fallback(problem, h200);
        REQUIRE(config);
        return folds_norm(LinearProblem(problem), values_of<RingConfig>(*config));
    };
    CHECK(folds(5));
    CHECK(folds(8));
    CHECK_FALSE(folds(9));
    CHECK_FALSE(folds(16));
}
