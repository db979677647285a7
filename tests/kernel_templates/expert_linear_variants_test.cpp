// The variants of expert_linear that linear has, too: what is chosen where, and what follows from a config.
#include <doctest/doctest.h>

#include "kernel_templates/catalog.h"
#include "kernel_templates/expert_linear/drawn/plan.h"
#include "kernel_templates/expert_linear/drawn/room.cuh"
#include "kernel_templates/expert_linear/gemv_plan.h"
#include "kernel_templates/expert_linear/mma_tiles/plan.h"
#include "kernel_templates/expert_linear/strips_plan.h"
#include "kernel_templates/expert_linear/variants.h"
#include "kernel_templates/expert_linear/wgmma/plan.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/space.h"

using namespace hone;
using namespace hone::expert_linear;

namespace {

const DeviceTraits h100 = *representative_device({9, 0, true});

Problem problem_of(const std::string& text) { return *parse_problem("expert_linear dtype=bf16 " + text); }

std::string winner(const std::string& text) {
    return std::string(fallback(problem_of(text), h100)->variant->name);
}

template <class Check>
void for_every_config(const std::string& text, Check check) {
    const Problem problem = problem_of(text);
    const std::vector<Config> configs = enumerate(problem, wgmma, h100);
    CHECK(!configs.empty());
    for (const Config& config : configs) {
        INFO(text << " | " << to_string(Candidate{&wgmma, config}));
        check(ExpertProblem(problem), hone::values_of<WgmmaConfig>(config),
              wgmma.plan(problem, config, h100));
    }
}

constexpr const char* some_sizes[] = {
    "experts=8 top_k=2 in=4096 out=14336 tokens=16 activation=silu gated=yes gather=yes",
    "experts=128 top_k=8 in=768 out=2048 tokens=64 combine=yes",
    "experts=32 top_k=4 in=2880 out=2880 tokens=1024 bias=yes",
    "experts=8 top_k=2 in=72 out=24 tokens=4096 activation=silu gated=yes",
};

}  // namespace

TEST_CASE(
    "models' layers run on tensor cores where experts have more than two rows, else stream their weights") {
    for (const char* model : {"experts=8 top_k=2 in=4096 out=14336", "experts=128 top_k=8 in=2048 out=768",
                              "experts=32 top_k=4 in=2880 out=2880"}) {
        const std::string sizes = std::string(model) + " activation=silu gated=yes gather=yes tokens=";
        CHECK(winner(sizes + "1") == "gemv");
        CHECK(winner(sizes + "1024") == "wgmma");
        CHECK(winner(sizes + "4096") == "wgmma");
    }
    CHECK(winner("experts=8 top_k=2 in=4096 out=33 tokens=4096") == "plain");
}

TEST_CASE("tiles of wgmma fit memory and registers, with a ring of three stages at least") {
    for (const char* sizes : some_sizes) {
        for_every_config(sizes, [](const ExpertProblem& p, const WgmmaConfig& c, const Plan& plan) {
            const linear::gemm::Geometry g = geometry(p, c);
            CHECK(g.stages() >= 3);
            CHECK(c.blocks_per_sm * (g.shared_bytes() + 1024) <= h100.shared_bytes_per_sm);
            const Launch& product = plan.launches[c.copied_x != 0 ? 1 : 0];
            CHECK(product.shared_bytes == static_cast<std::uint32_t>(g.shared_bytes()));
            CHECK(product.block.x == static_cast<std::uint32_t>(g.threads()));
            CHECK(g.consumers * g.staging_bytes() + g.staging_at() <= g.barriers_at());
        });
    }
}

TEST_CASE("blocks are as many as are resident, or as tiles that some routing needs") {
    for (const char* sizes : some_sizes) {
        for_every_config(sizes, [](const ExpertProblem& p, const WgmmaConfig& c, const Plan& plan) {
            const std::int64_t tiles = p.most_tiles(tile_rows(c)) * tiles_across(p, c);
            CHECK(plan.launches[c.copied_x != 0 ? 1 : 0].grid.x ==
                  std::min(tiles, h100.sm_count * c.blocks_per_sm));
        });
    }
}

TEST_CASE("a last round that all blocks share has room for parts of sums behind what is combined") {
    for (const char* option : {"", "combine=yes "}) {
        const std::string text = option + std::string("experts=8 top_k=2 in=14336 out=4096 tokens=4096");
        int splits = 0;
        for_every_config(text, [&](const ExpertProblem& p, const WgmmaConfig& c, const Plan& plan) {
            const std::int64_t results = p.combine ? p.places() * p.out * 2 : 0;
            const std::int64_t parts =
                c.tail_split != 0 ? blocks_of(p, c, h100) * geometry(p, c).workspace_bytes() : 0;
            splits += c.tail_split != 0 ? 1 : 0;
            CHECK(plan.workspace_bytes == results + parts);
            CHECK((c.tail_split == 0 || c.swapped == 0));
        });
        CHECK(splits > 0);
    }
    for_every_config(some_sizes[0], [](const ExpertProblem&, const WgmmaConfig& c, const Plan& plan) {
        CHECK(c.tail_split == 0);
        CHECK(plan.workspace_bytes == 0);
    });
}

TEST_CASE("copies of gathered rows stand between results that are combined and parts of sums") {
    for (const char* option : {"", "combine=yes "}) {
        int copied = 0;
        for_every_config(option + std::string("gather=yes experts=8 top_k=2 in=1024 out=4096 tokens=4096"),
                         [&](const ExpertProblem& p, const WgmmaConfig& c, const Plan& plan) {
                             if (c.copied_x == 0) return;
                             ++copied;
                             const std::int64_t results = p.combine ? p.places() * p.out * 2 : 0;
                             const std::int64_t parts =
                                 c.tail_split != 0 ? blocks_of(p, c, h100) * geometry(p, c).workspace_bytes()
                                                   : 0;
                             CHECK(plan.launch_count == (p.combine ? 3 : 2));
                             CHECK(std::string(plan.launches[0].kernel->name) == "expert_linear_copies");
                             CHECK(plan.launches[0].grid.x == p.places());
                             CHECK(plan.tensor_maps[1].pointer == workspace);
                             CHECK(plan.tensor_maps[1].offset_bytes == results);
                             CHECK(plan.workspace_bytes == results + p.places() * p.in * 2 + parts);
                         });
        CHECK(copied > 0);
    }
}

TEST_CASE("one or two tiles hold the fullest expert where each has 128 or 256 rows") {
    for (const char* half :
         {"experts=8 top_k=2 in=4096 out=14336 activation=silu gated=yes gather=yes tokens=",
          "experts=8 top_k=2 in=14336 out=4096 combine=yes tokens="}) {
        for (const auto& [tokens, rows] : {std::pair("512", 152), std::pair("1024", 144)}) {
            const Problem problem = problem_of(half + std::string(tokens));
            const auto c = hone::values_of<WgmmaConfig>(fallback(problem, h100)->config);
            INFO(to_string(problem));
            CHECK(c.swapped == 1);
            CHECK(c.tile_n == rows);
            CHECK(c.copied_x == (ExpertProblem(problem).gather ? 1 : 0));
        }
    }
}

TEST_CASE("boxes of x have no more rows than the call") {
    for_every_config("experts=8 top_k=2 in=4096 out=1024 tokens=5 combine=yes",
                     [](const ExpertProblem& p, const WgmmaConfig& c, const Plan& plan) {
                         CHECK(plan.tensor_maps[1].box[1] == std::min(tile_rows(c), p.places()));
                     });
}

TEST_CASE("maps of weights are all experts' rows one after the other; x has one where it is sorted") {
    for (const char* sizes : some_sizes) {
        for_every_config(sizes, [](const ExpertProblem& p, const WgmmaConfig& c, const Plan& plan) {
            REQUIRE(plan.tensor_map_count == 3);
            const TensorMap& weights = plan.tensor_maps[0];
            CHECK(weights.extents[1] == p.experts * p.out);
            CHECK(weights.stride_scalars[0] == TensorMap::no_gaps);
            CHECK(weights.box[1] == (c.swapped != 0 ? c.tile_m : c.tile_n) / p.products());
            const bool is_sorted = !p.gather || c.copied_x != 0;
            CHECK((plan.tensor_maps[1].same_as == TensorMap::none) == is_sorted);
            if (is_sorted) CHECK(plan.tensor_maps[1].extents[1] == p.places());
            if (is_sorted) CHECK(plan.tensor_maps[1].box[1] == tile_rows(c));
            CHECK((plan.tensor_maps[2].same_as == TensorMap::none) == p.gated);
        });
    }
}

TEST_CASE("where there is no wgmma, experts with more than two rows run on the warps' tensor cores") {
    const DeviceTraits a100 = *representative_device({8, 0, false});
    const auto chosen = [&](const std::string& text, Arch arch) {
        return std::string(fallback(problem_of(text), *representative_device(arch))->variant->name);
    };
    const std::string sizes =
        "experts=8 top_k=2 in=4096 out=14336 activation=silu gated=yes gather=yes tokens=";
    CHECK(chosen(sizes + "1", {8, 0, false}) == "gemv");
    CHECK(chosen(sizes + "16", {8, 0, false}) == "strips");
    CHECK(chosen(sizes + "512", {8, 0, false}) == "mma_tiles");
    CHECK(chosen(sizes + "512", {8, 9, false}) == "mma_tiles");
    CHECK(chosen(sizes + "512", {7, 5, false}) == "plain");
    const Problem problem = problem_of(sizes + "512");
    const std::vector<Config> configs = enumerate(problem, mma_tiles, a100);
    CHECK(!configs.empty());
    for (const Config& config : configs) {
        const auto c = hone::values_of<MmaTilesConfig>(config);
        const ExpertProblem p(problem);
        const linear::tiles::Geometry g = geometry(p, c);
        const Plan plan = mma_tiles.plan(problem, config, a100);
        CHECK(plan.launches[0].grid.x == p.most_tiles(c.tile_m) * ceil_div(p.out, g.result_columns()));
        CHECK(c.blocks_per_sm * (g.shared_bytes() + 1024) <= a100.shared_bytes_per_sm);
        CHECK(g.staging_bytes() <= static_cast<int>(plan.launches[0].shared_bytes));
    }
}

TEST_CASE("strips read the weights of up to 8 rows once, in blocks of which a multiprocessor holds two") {
    const std::string sizes = "experts=8 top_k=2 in=4096 out=14336 gather=yes tokens=";
    CHECK(winner(sizes + "1") == "gemv");
    CHECK(winner(sizes + "4") == "strips");
    CHECK(winner(sizes + "16") == "strips");
    CHECK(winner(sizes + "64") == "wgmma");
    CHECK(enumerate(problem_of(sizes + "1"), strips, h100).empty());
    CHECK(enumerate(problem_of(sizes + "64"), strips, h100).empty());
    CHECK(enumerate(*parse_problem("expert_linear dtype=fp32 " + sizes + "16"), strips, h100).empty());
    const Problem problem = problem_of(sizes + "16");
    const ExpertProblem p(problem);
    const std::vector<Config> configs = enumerate(problem, strips, h100);
    CHECK(!configs.empty());
    for (const Config& config : configs) {
        const auto c = hone::values_of<StripsConfig>(config);
        CHECK(c.tile_rows >= p.rows_an_active());
        CHECK(512 % c.threads() == 0);
        CHECK(c.rows % c.mma_rows() == 0);
        const Plan plan = strips.plan(problem, config, h100);
        CHECK(plan.launches[0].grid.x == p.most_tiles(c.tile_rows) * ceil_div(p.out, c.rows * c.row_warps));
    }
}

TEST_CASE("drawn tiles are wgmma's with room for numbers, and a count in the workspace behind all else") {
    for (const char* sizes :
         {"experts=8 top_k=2 in=4096 out=14336 activation=silu gated=yes gather=yes tokens=",
          "experts=8 top_k=2 in=14336 out=4096 combine=yes tokens=",
          "experts=32 top_k=4 in=2880 out=2880 bias=yes tokens="}) {
        for (const char* tokens : {"2", "32", "64"}) {
            const Problem problem = problem_of(sizes + std::string(tokens));
            const ExpertProblem p(problem);
            const std::vector<Config> configs = enumerate(problem, drawn_tiles, h100);
            CHECK(!configs.empty());
            for (const Config& config : configs) {
                const auto c = hone::values_of<DrawnConfig>(config);
                const linear::gemm::Geometry g = geometry(p, c.dealt());
                const Plan plan = drawn_tiles.plan(problem, config, h100);
                const Launch& product = plan.launches[c.copied_x != 0 ? 1 : 0];
                CHECK(c.tile_n >= p.rows_an_active());
                // The producer is a tile ahead of the consumers at most, whatever the ring holds.
                CHECK(p.in > 64 * (g.stages() - 1));
                CHECK(product.kernel == &drawn_kernels[0]);
                CHECK(product.shared_bytes ==
                      static_cast<std::uint32_t>(g.shared_bytes() + drawn::number_bytes));
                CHECK(c.blocks_per_sm * (static_cast<std::int64_t>(product.shared_bytes) + 1024) <=
                      h100.shared_bytes_per_sm);
                CHECK(plan.workspace_bytes % 256 == drawn::deal_bytes);
                CHECK(plan.workspace_bytes >= (p.combine ? p.places() * p.out * 2 : 0) + drawn::deal_bytes);
                if (p.combine) CHECK(plan.launches[1].kernel == &drawn_kernels[2]);
                if (c.copied_x != 0) CHECK(plan.launches[0].kernel == &drawn_kernels[1]);
            }
        }
    }
    const std::string gated =
        "experts=8 top_k=2 in=4096 out=14336 activation=silu gated=yes gather=yes tokens=";
    CHECK(winner(gated + "32") == "drawn");
    CHECK(winner(gated + "64") == "drawn");
    CHECK(winner(gated + "128") == "wgmma");
    for (const char* refused :
         {"experts=8 top_k=2 in=4096 out=14336 gather=yes tokens=1",    // gemv's
          "experts=8 top_k=2 in=4096 out=14336 gather=yes tokens=512",  // 128 rows an expert
          "experts=8 top_k=2 in=704 out=4096 gather=yes tokens=16"}) {  // short sums
        CHECK(enumerate(problem_of(refused), drawn_tiles, h100).empty());
    }
}

TEST_CASE("gemv holds an expert's share of rows in one block") {
    const Problem problem = problem_of("experts=128 top_k=8 in=2048 out=768 tokens=48 gather=yes");
    const std::vector<Config> configs = enumerate(problem, gemv, h100);
    CHECK(!configs.empty());
    for (const Config& config : configs) CHECK(hone::values_of<GemvConfig>(config).tile_rows >= 3);
    CHECK(enumerate(problem_of("experts=8 top_k=2 in=2048 out=768 tokens=48"), gemv, h100).empty());
}
