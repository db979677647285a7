#include <doctest/doctest.h>

#include <set>
#include <tuple>

#include "kernel_templates/linear/wgmma_tf32/geometry.cuh"
#include "tests/kernel_templates/linear_cases.h"

using namespace hone;
using namespace hone::linear_cases;

namespace {

linear::tf32::Geometry tf32_geometry_of(const Problem& problem, const Candidate& candidate) {
    const auto value = tunables_of(candidate);
    return {.tile_m = value("tile_m"),
            .tile_n = value("tile_n"),
            .consumers = value("consumers"),
            .blocks_per_sm = value("blocks_per_sm"),
            .cluster_k = value("cluster_k"),
            .gated = linear::LinearProblem(problem).gated,
            .swapped = value("swapped") != 0};
}

}  // namespace

TEST_CASE("wgmma_tf32: the ring fits, registers suffice, clusters have a tile each") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    for (const std::string& shape : shapes) {
        for (const std::int64_t tokens : token_counts) {
            const Problem problem = problem_of(shape + " tokens=" + std::to_string(tokens));
            const linear::LinearProblem p(problem);
            const Variant& variant = *find_variant(*problem.family, "wgmma_tf32");
            const std::vector<Config> configs = enumerate(problem, variant, h100);
            CHECK(configs.empty() != (p.dtype == Dtype::fp32 && p.in % 4 == 0 && p.out % 4 == 0));
            for (const Config& config : configs) {
                const Candidate candidate{&variant, config};
                INFO(to_string(problem) << " | " << to_string(candidate));
                const auto g = tf32_geometry_of(problem, candidate);
                const Plan plan = variant.plan(problem, config, h100);
                const Launch& launch = plan.launches[0];
                CHECK(plan.launch_count == 1);
                CHECK(plan.workspace_bytes == 0);
                CHECK(g.stages() >= 3);
                CHECK(launch.shared_bytes == static_cast<std::uint32_t>(g.shared_bytes()));
                CHECK((g.shared_bytes() + 1024) * g.blocks_per_sm <= h100.shared_bytes_per_sm);
                CHECK(g.stage_bytes() % 1024 == 0);
                if (g.moves_registers()) {
                    CHECK(g.producer_registers() + g.consumers * g.consumer_registers() <=
                          65536 / g.threads() / 8 * 8 * (1 + g.consumers));
                }
                const std::int64_t tiles = ceil_div(g.swapped ? p.out : p.tokens, g.result_rows()) *
                                           ceil_div(g.swapped ? p.tokens : p.out, g.result_columns());
                CHECK(launch.grid.x ==
                      (g.cluster_k > 1 ? tiles * g.cluster_k
                                       : std::min(tiles, std::int64_t{h100.sm_count} * g.blocks_per_sm)));
                CHECK(launch.cluster.x == static_cast<std::uint32_t>(g.cluster_k));

                REQUIRE(plan.tensor_map_count == 3);
                CHECK(plan.tensor_maps[2].same_as == (p.gated ? TensorMap::none : 1));
                for (std::size_t i = 0; i < 3; ++i) {
                    const TensorMap& map = plan.tensor_maps[i];
                    const int pointers[] = {linear::x, linear::weight, linear::up};
                    const int strides[] = {linear::x_stride, linear::weight_stride, linear::up_stride};
                    CHECK(map.pointer == pointers[i]);
                    CHECK(map.stride_scalars[0] == strides[i]);
                    CHECK(map.dtype == Dtype::fp32);
                    CHECK(map.extents[0] == p.in);
                    CHECK(map.extents[1] == (i == 0 ? p.tokens : p.out));
                    CHECK(map.box[0] * 4 == map.swizzle_bytes);
                    CHECK(map.box[1] <= 256);
                }
            }
        }
    }
}

TEST_CASE("wgmma_tf32: what the copies write is what tensor cores and fragments read") {
    // Model of one stage, as for wgmma. Lane l of a warp names to load_matrices the 16 bytes of row l % 16
    // and half l / 16 of a slice of 8 columns.
    const DeviceTraits h100 = *representative_device({9, 0, true});
    std::set<std::tuple<int, int, bool>> seen;
    for (const std::string shape : {"in=4096 out=4096", "in=4096 out=4096 gated=yes activation=silu"}) {
        for (const std::int64_t tokens : {16, 200, 2048}) {
            const Problem problem = problem_of("dtype=fp32 " + shape + " tokens=" + std::to_string(tokens));
            const Variant& variant = *find_variant(*problem.family, "wgmma_tf32");
            for (const Config& config : enumerate(problem, variant, h100)) {
                const auto g = tf32_geometry_of(problem, {&variant, config});
                if (!seen.insert({g.tile_m, g.tile_n, g.swapped}).second) continue;
                INFO(to_string(problem) << " | " << to_string(Candidate{&variant, config}));
                const int stage = (g.stages() - 1) * g.stage_bytes();
                const int weights = stage + (g.swapped ? 0 : g.right_at());
                SharedBytes shared;
                copy_box(shared, weights, 1, g.weight_box(), 4);
                if (g.gated) copy_box(shared, weights + g.weight_box() * 128, 2, g.weight_box(), 4);
                copy_box(shared, stage + (g.swapped ? g.right_at() : 0), 0, g.x_box(), 4);
                CHECK(static_cast<int>(shared.size()) * 4 == g.copied_bytes());
                CHECK(g.rest_at() + g.right_bytes() == g.stage_bytes());
                const auto want = [&](bool left, int row, int column) {
                    const int rows = left ? g.tile_m : g.tile_n;
                    const bool upper = left == g.swapped && g.gated && row >= rows / 2;
                    return Place{left == g.swapped ? upper ? 2 : 1 : 0, upper ? row - rows / 2 : row, column};
                };
                for (int slice = 0; slice < linear::tf32::slices; ++slice) {
                    for (int row = 0; row < g.tile_n; ++row) {
                        for (int column = 0; column < 8; column += 3) {
                            CHECK(read_operand(shared, stage + g.right_at(), row, slice, column, 4) ==
                                  want(false, row, 8 * slice + column));
                        }
                    }
                    for (int row = 0; row < g.tile_m; ++row) {
                        for (int half = 0; half < 2; ++half) {
                            const int place = row * 128 + ((half ^ (row % 8)) << 4);
                            const auto found = shared.find(stage + (place ^ (slice * 32)));
                            REQUIRE(found != shared.end());
                            CHECK(found->second == want(true, row, 8 * slice + 4 * half));
                        }
                    }
                }
            }
        }
    }
    CHECK(seen.size() > 10);
}
