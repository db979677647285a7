#include <doctest/doctest.h>

#include <array>
#include <map>
#include <set>
#include <tuple>

#include "kernel_templates/linear/mma_tiles/geometry.cuh"
#include "tests/kernel_templates/linear_cases.h"

using namespace hone;
using namespace hone::linear_cases;

namespace {

linear::tiles::Geometry tiles_of(const Problem& problem, const Candidate& candidate) {
    const auto value = tunables_of(candidate);
    return {.tile_m = value("tile_m"),
            .tile_n = value("tile_n"),
            .tile_k = value("tile_k"),
            .warps_m = value("warps_m"),
            .warps_n = value("warps_n"),
            .stages = value("stages"),
            .blocks_per_sm = value("blocks_per_sm"),
            .gated = linear::LinearProblem(problem).gated};
}

}  // namespace

TEST_CASE("mma_tiles: resident blocks fit the multiprocessor, parts of sums the workspace") {
    for (const std::string& shape : shapes) {
        for (const std::int64_t tokens : token_counts) {
            const Problem problem = problem_of(shape + " tokens=" + std::to_string(tokens));
            const linear::LinearProblem p(problem);
            const Variant& mma_tiles = *find_variant(*problem.family, "mma_tiles");
            for (const Arch arch :
                 {Arch{7, 5, false}, Arch{8, 0, false}, Arch{8, 9, false}, Arch{9, 0, true}}) {
                const DeviceTraits traits = *representative_device(arch);
                const std::vector<Config> configs = enumerate(problem, mma_tiles, traits);
                CHECK(configs.size() <= 1500);
                for (const Config& config : configs) {
                    const Candidate candidate{&mma_tiles, config};
                    INFO(to_string(problem) << " | " << to_string(candidate) << " on " << to_string(arch));
                    const auto g = tiles_of(problem, candidate);
                    const Plan plan = mma_tiles.plan(problem, config, traits);
                    CHECK(plan.launches[0].block.x == static_cast<std::uint32_t>(g.threads()));
                    CHECK(plan.launches[0].shared_bytes == static_cast<std::uint32_t>(g.shared_bytes()));
                    CHECK(g.blocks_per_sm * g.shared_bytes() <= traits.shared_bytes_per_sm);
                    CHECK(g.blocks_per_sm * g.threads() <= traits.max_threads_per_sm);
                    CHECK((!g.asynchronous() || traits.has_async_copy()));
                    CHECK((arch.major >= 8 || p.dtype == Dtype::fp16));
                    const std::int64_t split = tunable(candidate, "split");
                    CHECK(plan.launch_count == (split > 1 ? 2 : 1));
                    CHECK(plan.workspace_bytes ==
                          (split > 1 ? split * p.products() * p.tokens * p.out * 4 : 0));
                    if (split > 1) CHECK(plan.launches[1].grid.x * std::int64_t{1024} >= p.tokens * p.out);
                }
            }
        }
    }
}

TEST_CASE(
    "mma_tiles: copies fill a stage once, and warps read their operands from it without bank conflicts") {
    // Model of one stage: the chunks of 16 bytes that every thread copies, and the rows of 8 x 8 matrices
    // that the lanes of every warp name (ldmatrix), the swizzle as of the copy engine.
    const DeviceTraits a100 = *representative_device({8, 0, false});
    std::set<std::tuple<int, int, int, int, int, bool>> seen;
    for (const std::string& shape : shapes) {
        for (const std::int64_t tokens : {40, 333, 2048}) {
            const Problem problem = problem_of(shape + " tokens=" + std::to_string(tokens));
            const Variant& mma_tiles = *find_variant(*problem.family, "mma_tiles");
            for (const Config& config : enumerate(problem, mma_tiles, a100)) {
                const auto g = tiles_of(problem, {&mma_tiles, config});
                if (!seen.insert({g.tile_m, g.tile_n, g.tile_k, g.warps_m, g.warps_n, g.gated}).second)
                    continue;
                INFO(to_string(Candidate{&mma_tiles, config}));
                const auto place = [&](int row, int chunk) {
                    return swizzled(row * g.row_bytes() + chunk * 16, g.row_bytes());
                };
                std::map<int, std::pair<int, int>> stage;  // row and chunk by place
                for (int thread = 0; thread < g.threads(); ++thread) {
                    const int row = thread / g.chunks();
                    const int chunk = thread % g.chunks();
                    for (int round = 0; round < g.rounds(); ++round)
                        stage.emplace(place(row, chunk) + round * g.rows_a_round() * g.row_bytes(),
                                      std::pair{row + round * g.rows_a_round(), chunk});
                }
                REQUIRE(static_cast<int>(stage.size()) * 16 == g.stage_bytes());
                CHECK(g.x_rounds() + (g.gated ? 2 : 1) * g.weight_rounds() == g.rounds());

                // Matrix m of a block's four starts at row block + rows[m], 8 * chunks[m] columns on.
                const auto check = [&](int first_row, int base, int step, const std::array<int, 4>& rows,
                                       const std::array<int, 4>& chunks) {
                    for (std::size_t matrix = 0; matrix < 4; ++matrix) {
                        std::set<int> banks;
                        for (int lane = 0; lane < 8; ++lane) {
                            const int at = (base + place(rows[matrix] + lane, chunks[matrix])) ^ (step * 32);
                            banks.insert(at / 16 % 8);
                            CHECK(stage.at(at) ==
                                  std::pair{first_row + rows[matrix] + lane, 2 * step + chunks[matrix]});
                        }
                        CHECK(banks.size() == 8);
                    }
                };
                for (int step = 0; step < g.tile_k / 16; ++step) {
                    for (int row = 0; row < g.tile_m + g.tile_n; row += 16) {
                        const bool of_x = row < g.tile_m;
                        check(row, row * g.row_bytes(), step,
                              of_x ? std::array{0, 8, 0, 8} : std::array{0, 0, 8, 8},
                              of_x ? std::array{0, 0, 1, 1} : std::array{0, 1, 0, 1});
                    }
                }
            }
        }
    }
    CHECK(seen.size() > 10);
}
