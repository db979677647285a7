#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "kernel_templates/calibration.h"
#include "kernel_templates/linear/wgmma/geometry.cuh"
#include "kernel_templates/linear/wgmma/schedule.cuh"
#include "kernel_templates/space.h"
#include "tests/kernel_templates/linear_cases.h"

using namespace hone;
using namespace hone::linear_cases;

namespace {

linear::gemm::Geometry geometry_of(const Problem& problem, const Candidate& candidate) {
    const auto value = tunables_of(candidate);
    return {.tile_m = value("tile_m"),
            .tile_n = value("tile_n"),
            .consumers = value("consumers"),
            .blocks_per_sm = value("blocks_per_sm"),
            .cluster_k = value("cluster_k"),
            .gated = linear::LinearProblem(problem).gated,
            .swapped = value("swapped") != 0,
            .ping_pong = value("ping_pong") != 0,
            .tail_pairs = value("tail_split") == 2,
            .staged = value("staged")};
}

linear::gemm::Tiling tiling_of(const Problem& problem, const Candidate& candidate) {
    const linear::LinearProblem p(problem);
    const linear::gemm::Geometry g = geometry_of(problem, candidate);
    return {.out = static_cast<int>(p.out),
            .k_tiles = static_cast<int>(ceil_div(p.in, linear::gemm::Operands{}.columns)),
            .result_rows = g.result_rows(),
            .result_columns = g.result_columns(),
            .raster = static_cast<int>(tunable(candidate, "raster")),
            .cluster_k = g.cluster_k,
            .swapped = g.swapped,
            .tail_split = tunable(candidate, "tail_split") != 0,
            .in_pairs = tunable(candidate, "tail_split") == 2};
}

/// What all blocks of a grid do, as the schedule tells them: a tile by its place, and its steps.
class Works {
  public:
    Works(const linear::gemm::Tiling& tiling, int tokens, int grid) : tiling_(tiling), tokens_(tokens) {
        const int blocks = grid / tiling.cluster_k;
        for (int block = 0; block < blocks; ++block) {
            for (int rank = 0; rank < tiling.cluster_k; ++rank) {
                const linear::gemm::Schedule schedule(tiling, tokens, blocks, block, rank);
                std::vector<linear::gemm::Work>& list = of_block_.emplace_back();
                for (int i = 0; i < schedule.count(); ++i) list.push_back(schedule.work(i));
            }
        }
    }

    [[nodiscard]] const std::vector<std::vector<linear::gemm::Work>>& of_blocks() const { return of_block_; }
    [[nodiscard]] int steps_of(int block) const {
        int steps = 0;
        for (const auto& work : of_block_[static_cast<std::size_t>(block)]) steps += work.k_count;
        return steps;
    }

    /// Empty where every step of every tile is done once.
    [[nodiscard]] std::string fault() const {
        const int along = tiling_.along(tokens_);
        std::vector<int> done(static_cast<std::size_t>(tiling_.across(tokens_) * along * tiling_.k_tiles));
        for (const auto& list : of_block_) {
            for (const linear::gemm::Work& work : list) {
                if (work.row % tiling_.result_rows != 0 || work.column % tiling_.result_columns != 0)
                    return "a tile off the grid";
                const int tile =
                    work.row / tiling_.result_rows * along + work.column / tiling_.result_columns;
                for (int k = work.first_k; k < work.first_k + work.k_count; ++k)
                    ++done.at(static_cast<std::size_t>(tile * tiling_.k_tiles + k));
            }
        }
        for (std::size_t i = 0; i < done.size(); ++i) {
            if (done[i] != 1)
                return "step " + std::to_string(i) + " done " + std::to_string(done[i]) + " times";
        }
        return "";
    }

    /// In pairs: empty where a tile that is cut is the last one of both blocks of a cluster, behind as many
    /// whole ones, the beginning of its sum being the first one's.
    [[nodiscard]] std::string fault_of_pairs() const {
        for (std::size_t block = 0; block + 1 < of_block_.size(); block += 2) {
            const auto& first = of_block_[block];
            const auto& second = of_block_[block + 1];
            const auto cut = [this](const auto& list) {
                return std::ranges::count_if(
                    list, [this](const auto& work) { return work.k_count < tiling_.k_tiles; });
            };
            if (cut(first) != cut(second) || cut(first) > 1) return "parts without the other block's";
            if (cut(first) == 0) continue;
            if (first.size() != second.size()) return "one block has more whole tiles";
            const linear::gemm::Work& a = first.back();
            const linear::gemm::Work& b = second.back();
            if (a.row != b.row || a.column != b.column) return "parts of two tiles";
            if (a.first_k != 0 || b.first_k != a.k_count || b.first_k + b.k_count != tiling_.k_tiles)
                return "no halves";
        }
        return "";
    }

    /// Empty where the parts of each tile reach the block that finishes it, once and in order, from slots of
    /// their own, no more than blocks; and where no block can wait for one that waits for it.
    [[nodiscard]] std::string fault_of_parts() const {
        struct Part {
            const linear::gemm::Work* work;
            std::size_t block;
        };
        std::map<int, Part> left;  // by slot
        for (std::size_t block = 0; block < of_block_.size(); ++block) {
            for (const linear::gemm::Work& work : of_block_[block]) {
                if (!work.is_rest()) continue;
                if (work.slot >= static_cast<int>(of_block_.size())) return "a slot that is not there";
                if (!left.emplace(work.slot, Part{&work, block}).second) return "two parts in one slot";
            }
        }
        std::size_t collected = 0;
        for (std::size_t block = 0; block < of_block_.size(); ++block) {
            for (const linear::gemm::Work& work : of_block_[block]) {
                if (work.is_rest()) continue;
                int next = work.k_count;
                for (int slot = work.slot; slot < work.slot + work.others; ++slot, ++collected) {
                    const auto found = left.find(slot);
                    if (found == left.end()) return "a slot without a part";
                    const Part& part = found->second;
                    if (part.block >= block) return "waits for a block that starts later";
                    if (part.work->row != work.row || part.work->column != work.column ||
                        part.work->first_k != next)
                        return "another tile's part";
                    next += part.work->k_count;
                }
                if (next != tiling_.k_tiles) return "a tile without its end";
            }
        }
        return collected == left.size() ? "" : "a part that nobody adds";
    }

  private:
    linear::gemm::Tiling tiling_;
    int tokens_;
    std::vector<std::vector<linear::gemm::Work>> of_block_;
};

/// Panels that stand in a row: together all results of it, none beyond the tile, at places that a copy may
/// have.
void check_panels(const linear::gemm::Geometry& g) {
    const int width = g.swapped ? g.panel_tokens() : g.panel_width();
    CHECK(width % 8 == 0);
    CHECK(g.panel_start(0) == 0);
    for (int i = 1; i < g.panels_across(); ++i) {
        CHECK(g.panel_start(i) > g.panel_start(i - 1));
        CHECK(g.panel_start(i) <= g.panel_start(i - 1) + width);
        CHECK(g.panel_start(i) % 8 == 0);
    }
    CHECK(g.panel_start(g.panels_across() - 1) + width == (g.swapped ? g.tile_n : g.result_columns()));
}

}  // namespace

TEST_CASE("wgmma: the ring and the staging fit, clusters have a tile each, others as many blocks as fit") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    for (const std::string& shape : shapes) {
        for (const std::int64_t tokens : token_counts) {
            const Problem problem = problem_of(shape + " tokens=" + std::to_string(tokens));
            const linear::LinearProblem p(problem);
            const Variant& wgmma = *find_variant(*problem.family, "wgmma");
            for (const Config& config : test::space_on_h100(problem, wgmma)) {
                const Candidate candidate{&wgmma, config};
                INFO(to_string(problem) << " | " << to_string(candidate));
                const auto g = geometry_of(problem, candidate);
                const Plan plan = wgmma.plan(problem, config, h100);
                CHECK(g.stages() >= 3);
                CHECK(plan.launches[0].shared_bytes == static_cast<std::uint32_t>(g.shared_bytes()));
                CHECK((g.shared_bytes() + 1024) * g.blocks_per_sm <= h100.shared_bytes_per_sm);
                CHECK(g.store_panels() * g.panel_bytes() <= 32 * 1024);
                CHECK((g.staged == 0 || g.panels() >= g.store_panels()));
                if (g.staged >= 2 && g.cluster_k == 1) {
                    auto many = g;
                    many.staged = 1;
                    CHECK(g.stages() > many.stages());
                }
                if (g.staged == 3) CHECK((g.panel_bytes() <= 4 * 1024 && g.store_panels() >= 2));
                if (g.staged != 0 && !g.has_inbox()) check_panels(g);
                if (g.cluster_k > 1 && !g.has_inbox()) CHECK(g.inbox_bytes() == 0);
                if (g.has_inbox() || g.tail_pairs) {
                    int awaited = 0;
                    for (int rank = 0; rank < g.joined_blocks(); ++rank) awaited += g.awaited_bytes(rank);
                    CHECK(awaited == (g.joined_blocks() - 1) * g.tile_m * g.tile_n * 4);
                }
                if (g.has_inbox()) CHECK(g.inbox_at() % 16 == 0);
                if (g.tail_pairs) CHECK(g.awaited_bytes(0) <= g.stages() * g.stage_bytes());
                if (g.cluster_k > 1 && g.swapped) CHECK(g.sums() <= 144);
                CHECK(g.joins_early() == g.can_join_early());

                const std::int64_t tiles = ceil_div(g.swapped ? p.out : p.tokens, g.result_rows()) *
                                           ceil_div(g.swapped ? p.tokens : p.out, g.result_columns());
                const bool split = tunable(candidate, "tail_split") == 1;
                const std::uint32_t grid = plan.launches[0].grid.x;
                const bool leaves_place = tunable(candidate, "programmatic") >= 2 && g.blocks_per_sm > 1;
                const std::int64_t places =
                    std::int64_t{h100.sm_count} * (g.blocks_per_sm - (leaves_place ? 1 : 0));
                CHECK(plan.launch_count == 1);
                const std::int64_t neighbours = tunable(candidate, "neighbours");
                CHECK(plan.launches[0].cluster.x == static_cast<std::uint32_t>(g.cluster_k * neighbours));
                CHECK(grid % plan.launches[0].cluster.x == 0);
                CHECK(plan.workspace_bytes == (split ? places * g.workspace_bytes() : 0));
                if (g.cluster_k > 1) {
                    CHECK(grid == tiles * g.cluster_k);
                } else if (g.tail_pairs) {
                    CHECK(grid == 2 * std::min(tiles, places / 2));
                    CHECK(2 * (tiles % grid) <= grid);
                } else if (split && tiles < places) {
                    CHECK(grid % tiles < neighbours);
                    CHECK(grid >= 2 * tiles);
                    CHECK(grid <= places);
                } else {
                    CHECK(grid == std::min(ceil_div(tiles, neighbours) * neighbours, places));
                }
            }
        }
    }
}

TEST_CASE("wgmma: sums that two blocks join early come where steps are over, results leave where both are") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    std::set<std::tuple<int, int, bool>> seen;
    for (const std::int64_t tokens : {200, 300, 400, 512}) {
        const Problem problem = problem_of("dtype=bf16 in=4096 out=4096 tokens=" + std::to_string(tokens));
        const Variant& wgmma = *find_variant(*problem.family, "wgmma");
        for (const Config& config : enumerate(problem, wgmma, h100)) {
            const Candidate candidate{&wgmma, config};
            const auto g = geometry_of(problem, candidate);
            if (!g.joins_early() || !seen.emplace(g.tile_m, g.tile_n, g.swapped).second) continue;
            INFO(to_string(candidate));
            CHECK(g.cluster_k == 2);
            CHECK(g.consumers == 2);
            REQUIRE(g.staging_bytes() == 0);
            // Of a block of 128 threads, 16 bytes of a fragment each: the places of a stage, left rows first.
            const int left = g.left_bytes() / g.sent_bytes();
            CHECK(g.sent_left() == left);
            CHECK((g.sent_to_stage() - left) * g.sent_bytes() <= g.right_bytes());
            for (int steps = g.last_steps() + g.sent_stages(); steps <= 40; ++steps) {
                const auto stage_of = [&](int step) { return step % g.stages(); };
                std::set<int> last;
                for (int i = 1; i <= g.last_steps(); ++i) last.insert(stage_of(steps - i));
                std::set<int> taken;
                for (int fragment = 0; fragment < g.fragments(); fragment += g.sent_to_stage()) {
                    const int step = steps - 1 - g.last_steps() - fragment / g.sent_to_stage();
                    REQUIRE(step >= 0);
                    CHECK(step + g.stages() >= steps);  // no later step takes the stage
                    CHECK(taken.insert(stage_of(step)).second);
                    CHECK(last.count(stage_of(step)) == 0);
                }
                CHECK(static_cast<int>(taken.size()) == g.sent_stages());
            }
            // A panel stands in the right rows of one of the last steps, whole, for each block of rows.
            CHECK(g.panels_across() * g.panel_bytes() <= g.right_bytes());
            CHECK(g.panels() == g.panels_across() * g.row_blocks());
            CHECK(g.row_blocks() <= g.last_steps());
        }
    }
    CHECK(seen.size() > 20);
}

TEST_CASE("wgmma: where two warpgroups halve a block, each result of the tile is one's, who copies it") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    std::set<int> seen;
    for (const std::int64_t tokens : {200, 333, 777}) {
        const Problem problem = problem_of("dtype=bf16 in=3072 out=6144 tokens=" + std::to_string(tokens));
        const Variant& wgmma = *find_variant(*problem.family, "wgmma");
        for (const Config& config : enumerate(problem, wgmma, h100)) {
            const Candidate candidate{&wgmma, config};
            const auto g = geometry_of(problem, candidate);
            if (!g.halves() || !seen.insert(g.tile_n).second) continue;
            INFO(to_string(candidate));
            REQUIRE(g.staged == 3);
            std::map<std::pair<int, int>, int> owners;  // of blocks of 64 rows x 8 columns
            std::map<std::pair<int, int>, int> copies;
            for (int warpgroup = 0; warpgroup < 2; ++warpgroup) {
                const int half = g.first_column(warpgroup, g.row_blocks());
                CHECK(half % 8 == 0);  // rows of the right operand that begin where a swizzle does
                for (int b = 0; b <= g.row_blocks(); ++b) {
                    const bool is_half = b == g.row_blocks();
                    const int first = g.first_column(warpgroup, b);
                    const int columns = is_half ? g.tile_n / 2 : g.tile_n;
                    for (int column = first; column < first + columns; column += 8)
                        CHECK(owners.emplace(std::pair(g.block(warpgroup, b), column), warpgroup).second);
                }
                for (int panel = 0; panel < g.panels(); ++panel) {
                    const int whole = g.result_blocks() * g.panels_across();
                    const int b = panel < whole ? panel / g.panels_across() : g.row_blocks();
                    const int start = panel < whole ? g.panel_start(panel % g.panels_across())
                                                    : half + g.half_start(panel - whole);
                    for (int column = start; column < start + g.panel_tokens(); column += 8) {
                        const std::pair place(g.block(warpgroup, b), column);
                        REQUIRE(owners.contains(place));
                        CHECK(owners[place] == warpgroup);
                        ++copies[place];
                    }
                }
            }
            CHECK(owners.size() == static_cast<std::size_t>(g.tile_m / 64 * g.tile_n / 8));
            CHECK(copies.size() == owners.size());
            CHECK(owners.rbegin()->first == std::pair(g.tile_m / 64 - 1, g.tile_n - 8));
        }
    }
    CHECK(seen.size() >= 3);
}

TEST_CASE("wgmma: the default of many tokens fills the rounds: it is predicted near the best of the space") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    for (const char* text : {"in=3072 out=3072 tokens=777", "in=3584 out=18944 tokens=1100"}) {
        const Problem problem = problem_of(std::string("dtype=bf16 ") + text);
        const std::optional<Candidate> chosen = fallback(problem, h100);
        REQUIRE(chosen.has_value());
        INFO(text << " | " << to_string(*chosen));
        CHECK(predicted_us(problem, *chosen, h100) < 1.1 * ranked_space(problem, h100).front().predicted_us);
    }
}

TEST_CASE(
    "wgmma: few early weights (programmatic=3) are predicted ahead of many, and are none where they are "
    "all") {
    const DeviceTraits h200 = *representative_device({9, 0, true});
    int pairs = 0;
    int alone = 0;
    for (const char* tokens : {" tokens=128", " tokens=512", " tokens=1024"}) {
        const Problem problem = problem_of("dtype=bf16 in=4096 out=4096" + std::string(tokens));
        std::map<std::string, double> predicted;
        for (const RankedCandidate& ranked : ranked_space(problem, h200))
            predicted[to_string(ranked.candidate)] = ranked.predicted_us;
        for (const auto& [name, many_us] : predicted) {
            constexpr std::string_view many = " programmatic=2";
            const std::size_t at = name.find(many);
            if (!name.starts_with("wgmma ") || at == std::string::npos) continue;
            std::string twin = name;
            twin.replace(at, many.size(), " programmatic=3");
            const auto few = predicted.find(twin);
            const Candidate candidate = *parse_candidate(*problem.family, name);
            const linear::gemm::Geometry g = geometry_of(problem, candidate);
            const int weight_bytes = 128 * g.weight_box();
            const bool has_rest = std::max(2, 32 * 1024 / weight_bytes) < g.stages();
            INFO(name);
            CHECK((few != predicted.end()) == has_rest);
            if (few != predicted.end()) CHECK(few->second < many_us);
            ++(has_rest ? pairs : alone);
        }
    }
    CHECK(pairs > 100);
    CHECK(alone > 0);
}

TEST_CASE("wgmma: a residual is read for no token whose result may already have taken its place") {
    int in_turns = 0;
    for (const std::int64_t tokens : {150, 300, 2048}) {
        const Problem problem = problem_of(
            "dtype=bf16 norm=no activation=none gated=no bias=no residual=yes "
            "in=4096 out=4096 tokens=" +
            std::to_string(tokens));
        const Variant& wgmma = *find_variant(*problem.family, "wgmma");
        for (const Config& config : test::space_on_h100(problem, wgmma)) {
            const Candidate candidate{&wgmma, config};
            const auto g = geometry_of(problem, candidate);
            if (g.staged == 0 || !g.swapped || g.has_inbox()) continue;
            INFO(to_string(problem) << " | " << to_string(candidate));
            const bool is_apart = g.staged == 3 || g.store_panels() < g.panels();
            in_turns += g.staged == 3 ? 1 : 0;
            for (int i = 1; i < g.panels_across() && is_apart; ++i)
                CHECK(g.panel_start(i) == g.panel_start(i - 1) + g.panel_tokens());
        }
    }
    CHECK(in_turns > 0);
}

TEST_CASE("wgmma: neighbours share panels: two tiles that stand beside each other") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    int seen = 0;
    for (const std::string& shape : shapes) {
        for (const std::int64_t tokens : {300, 400, 512, 2048}) {
            const Problem problem = problem_of(shape + " tokens=" + std::to_string(tokens));
            const Variant& wgmma = *find_variant(*problem.family, "wgmma");
            for (const Config& config : test::space_on_h100(problem, wgmma)) {
                const Candidate candidate{&wgmma, config};
                if (tunable(candidate, "neighbours") == 1) continue;
                INFO(to_string(problem) << " | " << to_string(candidate));
                const linear::gemm::Tiling t = tiling_of(problem, candidate);
                const int grid = static_cast<int>(wgmma.plan(problem, config, h100).launches[0].grid.x);
                // The first two blocks: the same rows, or the same columns, of operands.
                const linear::gemm::Schedule first(t, static_cast<int>(tokens), grid, 0, 0);
                const linear::gemm::Schedule second(t, static_cast<int>(tokens), grid, 1, 0);
                if (first.count() == 0 || second.count() == 0 || t.tail_split) continue;
                const linear::gemm::Work a = first.work(0);
                const linear::gemm::Work b = second.work(0);
                CHECK((a.row == b.row) != (a.column == b.column));
                if (t.swapped && t.raster == 1) CHECK(a.row == b.row);  // the weight's
                ++seen;
            }
        }
    }
    CHECK(seen > 100);
}

TEST_CASE("wgmma: blocks together do every step of every tile once, and the parts of a tile meet") {
    // Every candidate's schedule, also for fewer tokens than it was made for; few distinct ones.
    const DeviceTraits h100 = *representative_device({9, 0, true});
    std::set<std::tuple<int, int, int, int, int, int, bool, bool, bool, int, std::uint32_t>> seen;
    for (const std::string& shape : shapes) {
        for (const std::int64_t tokens : {4, 16, 100, 333, 2048}) {
            const Problem problem = problem_of(shape + " tokens=" + std::to_string(tokens));
            const Variant& wgmma = *find_variant(*problem.family, "wgmma");
            for (const Config& config : test::space_on_h100(problem, wgmma)) {
                const linear::gemm::Tiling t = tiling_of(problem, {&wgmma, config});
                for (const std::int64_t called : {tokens, tokens / 2 + 1}) {
                    const Plan plan = wgmma.plan(with(problem, 7, called), config, h100);
                    const std::uint32_t grid = plan.launches[0].grid.x;
                    const int count = static_cast<int>(called);
                    if (!seen.insert({t.out, t.k_tiles, t.result_rows, t.result_columns, t.raster,
                                      t.cluster_k, t.swapped, t.tail_split, t.in_pairs, count, grid})
                             .second)
                        continue;
                    INFO(to_string(problem)
                         << " | " << to_string(Candidate{&wgmma, config}) << " | " << called);
                    const Works works(t, count, static_cast<int>(grid));
                    CHECK(works.fault() == "");
                    if (t.in_pairs) {
                        CHECK(works.fault_of_pairs() == "");
                    } else if (t.cluster_k == 1) {
                        CHECK(works.fault_of_parts() == "");
                    }
                }
            }
        }
    }
    CHECK(seen.size() > 500);
}

TEST_CASE("tail_split: whole rounds stay whole, and parts of the last one are equal within a unit of steps") {
    std::mt19937 random(7);
    const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    int cut = 0;
    for (int i = 0; i < 3000; ++i) {
        const int unit = 1 << draw(0, 2);
        const linear::gemm::Tiling tiling{.out = 8 * draw(1, 200),
                                          .k_tiles = draw(1, 90) * unit,
                                          .k_unit = unit,
                                          .result_rows = 64,
                                          .result_columns = 8 * draw(1, 16),
                                          .raster = draw(1, 16),
                                          .cluster_k = 1,
                                          .swapped = draw(0, 1) == 1,
                                          .tail_split = true};
        const int tokens = draw(1, 700);
        const int tiles = tiling.across(tokens) * tiling.along(tokens);
        const int grid = draw(1, 150);
        const int parts = linear::gemm::tail_parts(tiles, grid, tiling.k_tiles);
        INFO(tiling.out << " columns, " << tokens << " tokens, " << tiling.k_tiles << " steps, " << tiles
                        << " tiles of " << tiling.result_columns << " columns, " << grid << " blocks");
        const Works works(tiling, tokens, grid);
        CHECK(works.fault() == "");
        CHECK(works.fault_of_parts() == "");
        if (parts == 1) continue;
        ++cut;
        const int rounds = tiles / grid;
        for (int block = 0; block < grid; ++block) {
            const bool has_part = block < tiles % grid * parts;
            const int steps = works.steps_of(block) - rounds * tiling.k_tiles;
            const int units = tiling.k_tiles / unit;
            CHECK(steps % unit == 0);
            CHECK(steps >= (has_part ? units / parts * unit : 0));
            CHECK(steps <= (has_part ? (units / parts + 1) * unit : 0));
        }
    }
    CHECK(cut > 500);
}

TEST_CASE("wgmma: tensor maps describe the call's tensors, and no argument names a map that is not there") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    for (const std::string& shape : shapes) {
        const Problem problem = problem_of(shape + " tokens=100");
        const linear::LinearProblem p(problem);
        const Variant& wgmma = *find_variant(*problem.family, "wgmma");
        for (const Config& config : test::space_on_h100(problem, wgmma)) {
            const auto g = geometry_of(problem, {&wgmma, config});
            const Plan plan = wgmma.plan(problem, config, h100);
            INFO(to_string(problem) << " | " << to_string(Candidate{&wgmma, config}));
            REQUIRE(plan.tensor_map_count == 5);
            CHECK(plan.tensor_maps[2].same_as == (p.gated ? TensorMap::none : 1));
            CHECK(plan.tensor_maps[3].same_as == (g.staged != 0 ? TensorMap::none : 1));
            // A tile of fewer tokens has a box of its own: no copy asks for tokens that do not exist.
            const std::int64_t rest = p.tokens % g.x_box();
            CHECK(plan.tensor_maps[0].box[1] == g.x_box());
            CHECK(plan.tensor_maps[4].same_as == (rest == 0 ? 0 : TensorMap::none));
            if (rest != 0) CHECK(plan.tensor_maps[4].box[1] == rest);
            for (std::size_t i = 0; i < 5; ++i) {
                const TensorMap& map = plan.tensor_maps[i];
                if (map.same_as != TensorMap::none) continue;
                const bool is_x = map.pointer == linear::x;
                const bool is_out = map.pointer == linear::out;
                CHECK(map.extents[0] == (is_out ? p.out : p.in));
                CHECK(map.extents[1] == (is_x || is_out ? p.tokens : p.out));
                CHECK(map.stride_scalars[0] == (is_x                            ? linear::x_stride
                                                : is_out                        ? linear::out_stride
                                                : map.pointer == linear::weight ? linear::weight_stride
                                                                                : linear::up_stride));
                CHECK(map.box[0] * 2 == map.swizzle_bytes);
                CHECK(map.box[1] <= 256);
                if (is_out) CHECK(map.box[1] == (g.swapped ? g.panel_tokens() : linear::gemm::block_rows));
            }
            const std::span<const KernelArg> args = plan.launches[0].kernel->args;
            for (std::size_t a = 0; a < args.size(); ++a) {
                const bool is_last = a + 1 == args.size();
                CHECK((args[a].kind == KernelArg::Kind::tensor_map) == (a < 4 || is_last));
                if (a < 4 || is_last) CHECK(args[a].index == (is_last ? 4 : a));
            }
        }
    }
}

TEST_CASE("wgmma: what the copies write is what the tensor cores read through their descriptors") {
    // Model of one stage: boxes of x, weight and up as the producer asks for them, read row by row as the
    // instructions of every consumer do.
    std::set<std::tuple<int, int, bool, bool>> seen;
    for (const std::string& shape : shapes) {
        for (const std::int64_t tokens : {16, 333, 2048}) {
            const Problem problem = problem_of(shape + " tokens=" + std::to_string(tokens));
            const Variant& wgmma = *find_variant(*problem.family, "wgmma");
            for (const Config& config : test::space_on_h100(problem, wgmma)) {
                const auto g = geometry_of(problem, {&wgmma, config});
                if (!seen.insert({g.tile_m, g.tile_n, g.gated, g.swapped}).second) continue;
                INFO(to_string(Candidate{&wgmma, config}));
                const int stage = g.stages() - 1;
                const int left = g.left_at() + stage * g.left_bytes();
                const int right = g.right_at() + stage * g.right_bytes();
                REQUIRE(left % 1024 == 0);
                REQUIRE(right % 1024 == 0);
                SharedBytes shared;
                const int weights = g.swapped ? left : right;
                const int xs = g.swapped ? right : left;
                copy_box(shared, weights, 1, g.weight_box());
                if (g.gated) copy_box(shared, weights + g.weight_box() * 128, 2, g.weight_box());
                copy_box(shared, xs, 0, g.x_box());
                CHECK(static_cast<int>(shared.size()) * 2 == g.stage_bytes());
                for (const bool is_left : {true, false}) {
                    const int rows = is_left ? g.tile_m : g.tile_n;
                    const bool is_weight = is_left == g.swapped;
                    for (int row = 0; row < rows; ++row) {
                        const bool upper = is_weight && g.gated && row >= rows / 2;
                        const Place want{is_weight ? upper ? 2 : 1 : 0, upper ? row - rows / 2 : row, 0};
                        for (int step = 0; step < 4; ++step) {
                            for (int column = 0; column < 16; column += 5) {
                                const Place got =
                                    read_operand(shared, is_left ? left : right, row, step, column);
                                CHECK(got == Place{std::get<0>(want), std::get<1>(want), 16 * step + column});
                            }
                        }
                    }
                }
            }
        }
    }
    CHECK(seen.size() > 10);
}
