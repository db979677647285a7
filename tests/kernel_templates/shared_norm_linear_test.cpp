#include "kernel_templates/shared_norm_linear/shared_norm_linear.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernel_templates/catalog.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/linear/ring/plan.h"
#include "kernel_templates/linear/variants.h"
#include "kernel_templates/linear/wgmma/plan.h"
#include "kernel_templates/shared_norm_linear/ring_plan.h"
#include "kernel_templates/space.h"

using namespace hone;

namespace {

Problem problem_of(const std::string& text) { return *parse_problem("shared_norm_linear " + text); }
std::string refused(const std::string& text) {
    std::string error;
    return parse_problem("shared_norm_linear " + text, &error) ? "" : error;
}

const std::string front = "dtype=bf16 next_norm=yes residual=yes in=4096 out=4096 tokens=8";
const std::string behind = "dtype=bf16 norm=yes gated=yes activation=silu in=4096 out=14336 tokens=8";
const DeviceTraits& h100() {
    static const DeviceTraits traits = *representative_device({9, 0, true});
    return traits;
}

}  // namespace

TEST_CASE("the fields of shared_norm_linear stand in their order, with their defaults") {
    CHECK(to_string(problem_of("dtype=bf16 norm=yes in=64 out=40 tokens=3")) ==
          "shared_norm_linear dtype=bf16 norm=yes next_norm=no activation=none gated=no bias=no residual=no "
          "in=64 out=40 tokens=3");
}

TEST_CASE(
    "shared_norm_linear refuses columns that are no whole slots, gates in front of a norm, and other types") {
    CHECK(refused("dtype=bf16 norm=yes in=72 out=64 tokens=1").find("in is 72; allowed: multiples of 16") !=
          std::string::npos);
    CHECK(refused("dtype=bf16 next_norm=yes in=64 out=72 tokens=1").find("out is 72") != std::string::npos);
    CHECK(refused("dtype=bf16 next_norm=yes in=72 out=64 tokens=1").empty());
    CHECK(refused("dtype=bf16 norm=yes in=64 out=72 tokens=1").empty());
    CHECK(refused("dtype=bf16 next_norm=yes gated=yes activation=silu in=64 out=64 tokens=1")
              .find("next_norm=yes has no gate") != std::string::npos);
    CHECK(refused("dtype=bf16 norm=yes gated=yes in=64 out=64 tokens=1").find("activation") !=
          std::string::npos);
    // x times the norm's weight may leave fp16's range.
    CHECK(refused("dtype=fp16 norm=yes in=64 out=64 tokens=1").find("dtype=fp16") != std::string::npos);
}

TEST_CASE("what a product has of a norm is what it takes and gives beside linear's") {
    CHECK(
        to_string(shared_norm_linear::linear_problem(problem_of(front))) ==
        "linear dtype=bf16 norm=no activation=none gated=no bias=no residual=yes in=4096 out=4096 tokens=8");
    const auto present = [](const std::string& text) {
        std::string names;
        const Problem problem = problem_of(text);
        for (const Argument& argument : problem.family->arguments(problem)) {
            if (argument.present) names += std::string(argument.name) + " ";
        }
        return names;
    };
    CHECK(present(front) == "x norm_weight weight residual out workspace scaled squares ");
    CHECK(present(behind) == "x weight up out workspace norm_squares ");
    const Problem problem = problem_of(front);
    const Work work = problem.family->work(problem);
    const Problem plain = shared_norm_linear::linear_problem(problem);
    // Results once more, the norm's weight, and 256 slots a token.
    CHECK(work.bytes == plain.family->work(plain).bytes + 2.0 * 9 * 4096 + 4.0 * 8 * 256);
}

TEST_CASE("its ring has the space of linear's where a block's rows are whole slots") {
    const auto count = [](const Problem& problem) {
        return enumerate(problem, *find_variant(*problem.family, "ring"), h100()).size();
    };
    const Problem other = problem_of(behind);
    CHECK(count(other) == count(shared_norm_linear::linear_problem(other)));
    const Problem problem = problem_of(front);
    CHECK(count(problem) > 0);
    CHECK(count(problem) < count(shared_norm_linear::linear_problem(problem)));
    for (const Config& config : enumerate(problem, shared_norm_linear::ring, h100())) {
        const auto c = values_of<linear::RingConfig>(config);
        REQUIRE(c.rows / c.cluster_k % linear::square_columns == 0);
        REQUIRE(allowed(shared_norm_linear::linear_problem(problem), {&linear::ring, config}, h100()));
    }
}

TEST_CASE("its fallback is linear's ring, or one beside it whose tiles are whole slots") {
    const auto rows = [](const std::string& text) {
        const Candidate chosen = fallback(problem_of(text), h100()).value();
        REQUIRE(chosen.variant == &shared_norm_linear::ring);
        return values_of<linear::RingConfig>(chosen.config).rows;
    };
    CHECK(rows("dtype=bf16 norm=yes in=2048 out=2048 tokens=8") == 24);
    CHECK(rows("dtype=bf16 next_norm=yes residual=yes in=2048 out=2048 tokens=8") == 16);
    CHECK(rows(front) % 16 == 0);
    const Candidate narrow =
        fallback(problem_of("dtype=bf16 next_norm=yes residual=yes in=896 out=896 tokens=8"), h100()).value();
    CHECK(narrow.variant == &shared_norm_linear::plain);  // no ring: norms have launches there
}

TEST_CASE("its ring is launched as linear's, with a place for each token's factor behind a norm") {
    for (const std::string& text : {front, behind}) {
        const Problem problem = problem_of(text);
        const Problem plain = shared_norm_linear::linear_problem(problem);
        const bool takes = text == behind;
        for (const Config& config : enumerate(problem, shared_norm_linear::ring, h100())) {
            const Plan ours = shared_norm_linear::ring.plan(problem, config, h100());
            const Plan theirs = linear::ring.plan(plain, config, h100());
            REQUIRE(ours.launch_count == 1);
            REQUIRE(ours.launches[0].grid == theirs.launches[0].grid);
            REQUIRE(ours.launches[0].block == theirs.launches[0].block);
            REQUIRE(ours.launches[0].shared_bytes == theirs.launches[0].shared_bytes + (takes ? 4 * 8 : 0));
            REQUIRE(ours.tensor_map_count == theirs.tensor_map_count);
            for (std::size_t i = 0; i < static_cast<std::size_t>(ours.tensor_map_count); ++i)
                REQUIRE(ours.tensor_maps[i] == theirs.tensor_maps[i]);
            // Factors stand in front of the barriers, which begin at multiples of eight.
            const auto g = shared_norm_linear::geometry(shared_norm_linear::SharedNormProblem(problem),
                                                        values_of<linear::RingConfig>(config));
            REQUIRE(g.barriers_at() - g.squares_at() == (takes ? 4 * 8 : 0));
            REQUIRE(g.barriers_at() % 8 == 0);
        }
    }
}

TEST_CASE(
    "its wgmma has all tokens in one tile, and in front of a norm whole slots in each block of a cluster") {
    const auto configs_of = [](const Problem& problem) {
        std::vector<linear::WgmmaConfig> configs;
        for (const Config& config : enumerate(problem, shared_norm_linear::wgmma, h100())) {
            REQUIRE(allowed(shared_norm_linear::linear_problem(problem), {&linear::wgmma, config}, h100()));
            configs.push_back(values_of<linear::WgmmaConfig>(config));
        }
        return configs;
    };
    const std::string in_front = "dtype=bf16 next_norm=yes residual=yes in=4096 out=4096 tokens=";
    for (const std::int64_t tokens : {48, 64, 100, 128}) {
        const std::vector<linear::WgmmaConfig> configs =
            configs_of(problem_of(in_front + std::to_string(tokens)));
        CHECK(!configs.empty());
        for (const linear::WgmmaConfig& c : configs) {
            REQUIRE(tokens <= c.tile_m);
            REQUIRE(c.swapped == 0);
            REQUIRE(c.cluster_k > 1);
            REQUIRE(c.tile_n / c.cluster_k % linear::square_columns == 0);
        }
    }
    const std::vector<linear::WgmmaConfig> gates =
        configs_of(problem_of("dtype=bf16 norm=yes gated=yes activation=silu in=4096 out=14336 tokens=64"));
    CHECK(std::ranges::any_of(gates, [](const linear::WgmmaConfig& c) { return c.ping_pong != 0; }));
    CHECK(configs_of(problem_of("dtype=bf16 norm=yes in=4096 out=6144 tokens=32")).empty());  // half a tile
}

TEST_CASE("its wgmma is launched as linear's, and leaves room for a factor of each row behind a norm") {
    for (const std::string& text :
         {std::string("dtype=bf16 next_norm=yes residual=yes in=4096 out=4096 tokens=64"),
          std::string("dtype=bf16 norm=yes in=4096 out=6144 tokens=64")}) {
        const Problem problem = problem_of(text);
        const Problem plain = shared_norm_linear::linear_problem(problem);
        for (const Config& config : enumerate(problem, shared_norm_linear::wgmma, h100())) {
            const auto c = values_of<linear::WgmmaConfig>(config);
            const Plan ours = shared_norm_linear::wgmma.plan(problem, config, h100());
            const Plan theirs = linear::wgmma.plan(plain, config, h100());
            REQUIRE(ours.launch_count == 1);
            REQUIRE(ours.launches[0].grid == theirs.launches[0].grid);
            REQUIRE(ours.launches[0].block == theirs.launches[0].block);
            REQUIRE(ours.launches[0].cluster == theirs.launches[0].cluster);
            REQUIRE(ours.launches[0].shared_bytes == theirs.launches[0].shared_bytes);
            REQUIRE(c.blocks_per_sm * (ours.launches[0].shared_bytes + 4 * c.tile_m + 8 + 1024) <=
                    228 * 1024);
        }
    }
}

TEST_CASE("its gemv and strips are linear's, behind a norm alone") {
    const Problem problem =
        problem_of("dtype=bf16 norm=yes gated=yes activation=silu in=4096 out=14336 tokens=4");
    const Problem plain = shared_norm_linear::linear_problem(problem);
    for (const auto& [ours, theirs] : {std::pair{&shared_norm_linear::gemv, &linear::gemv},
                                       std::pair{&shared_norm_linear::strips, &linear::strips}}) {
        const std::vector<Config> configs = enumerate(problem, *ours, h100());
        CHECK(!configs.empty());
        CHECK(configs == enumerate(plain, *theirs, h100()));
        for (const Config& config : configs) {
            const Plan plan = ours->plan(problem, config, h100());
            const Plan of_product = theirs->plan(plain, config, h100());
            REQUIRE(plan.launch_count == 1);
            REQUIRE(plan.launches[0].grid == of_product.launches[0].grid);
            REQUIRE(plan.launches[0].programmatic == of_product.launches[0].programmatic);
        }
        CHECK(enumerate(problem_of("dtype=bf16 next_norm=yes residual=yes in=4096 out=4096 tokens=4"), *ours,
                        h100())
                  .empty());
    }
}

TEST_CASE("winners of linear's ring serve it, also those of clusters whose blocks' rows are no whole slots") {
    const Problem problem = problem_of("dtype=bf16 next_norm=yes residual=yes in=4096 out=4096 tokens=16");
    const Problem kin = problem.family->kin(problem).value();
    CHECK(kin == shared_norm_linear::linear_problem(problem));
    const auto ours = [&](const std::string& config) {
        const Candidate theirs = parse_candidate(*kin.family, "ring tokens=16 " + config).value();
        REQUIRE(allowed(kin, theirs, h100()));
        const Candidate taken = problem.family->from_kin(problem, theirs);
        CHECK(allowed(problem, taken, h100()));
        return to_string(taken);
    };
    const std::string rest = " early=2 spread=0 programmatic=1";
    const std::string alone = "rows=32 consumers=2 stage_columns=128 stages=16 cluster_k=1" + rest;
    CHECK(ours(alone) == "ring tokens=16 " + alone);
    const std::string halves = "rows=32 consumers=2 stage_columns=128 stages=16 cluster_k=2" + rest;
    CHECK(ours(halves) == "ring tokens=16 " + halves);
    CHECK(ours("rows=48 consumers=2 stage_columns=128 stages=12 cluster_k=2" + rest) ==
          "ring tokens=16 rows=48 consumers=2 stage_columns=128 stages=12 cluster_k=1" + rest);
    const Candidate wide =
        parse_candidate(*kin.family,
                        "wgmma tile_m=64 tile_n=64 consumers=1 ping_pong=0 blocks_per_sm=1 "
                        "swapped=0 tail_split=0 cluster_k=2 staged=0 raster=8 l2_hint=1 "
                        "programmatic=1 neighbours=1")
            .value();
    CHECK(to_string(problem.family->from_kin(problem, wide)) == to_string(wide));
    const Candidate other{find_variant(*kin.family, "mma"), {}};
    CHECK(problem.family->from_kin(problem, other) == other);  // which is none of the family's
}
