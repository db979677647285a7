#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "kernel_templates/quantized_linear/wgmma_w8/plan.h"
#include "tests/kernel_templates/linear_cases.h"

using namespace hone;
using namespace hone::linear_cases;

namespace {

const std::vector<std::string> code_shapes{
    "dtype=bf16 format=w8a8 group=0 quantized_x=yes in=4096 out=4096",
    "dtype=fp16 format=w8a8 group=0 quantized_x=no in=14336 out=4096 bias=yes residual=yes",
    "dtype=bf16 format=w8a8 group=0 quantized_x=no norm=yes in=4096 out=14336 gated=yes activation=silu",
    "dtype=bf16 format=fp8 group=0 quantized_x=yes in=4096 out=28672",
    "dtype=bf16 format=fp8 group=128 quantized_x=yes in=4096 out=14336 gated=yes activation=silu",
    "dtype=bf16 format=fp8 group=128 quantized_x=no norm=yes in=7168 out=2048",
    "dtype=fp16 format=fp8 group=0 quantized_x=no in=1040 out=1008 activation=gelu_erf"};

Problem quantized(const std::string& text) { return *parse_problem("quantized_linear " + text); }
const Variant& wgmma_w8(const Problem& problem) { return *find_variant(*problem.family, "wgmma_w8"); }

linear::gemm::Geometry geometry_of(const Problem& problem, const Candidate& candidate) {
    const auto value = tunables_of(candidate);
    return {.tile_m = value("tile_m"),
            .tile_n = value("tile_n"),
            .consumers = value("consumers"),
            .blocks_per_sm = value("blocks_per_sm"),
            .cluster_k = value("cluster_k"),
            .gated = quantized_linear::QuantizedProblem(problem).gated,
            .swapped = value("swapped") != 0,
            .ping_pong = value("ping_pong") != 0,
            .tail_pairs = value("tail_split") == 2,
            .staged = value("staged"),
            .operands = {.columns = 128}};
}

/// Calls visit(problem, candidate, geometry) for all configs of all shapes and some numbers of tokens.
template <class Visit>
void for_each_config(Visit visit) {
    for (const std::string& shape : code_shapes) {
        for (const std::int64_t tokens : {1, 64, 333, 2048}) {
            const Problem problem = quantized(shape + " tokens=" + std::to_string(tokens));
            const Variant& variant = wgmma_w8(problem);
            for (const Config& config : test::space_on_h100(problem, variant)) {
                const Candidate candidate{&variant, config};
                INFO(to_string(problem) << " | " << to_string(candidate));
                visit(problem, candidate, geometry_of(problem, candidate));
            }
        }
    }
}

Plan plan_of(const Problem& problem, const Candidate& candidate) {
    return candidate.variant->plan(problem, candidate.config, *representative_device({9, 0, true}));
}

/// The value that a launch takes for a member of its kernel's struct.
const PlanValue& value_of(const Plan& plan, const Launch& launch, std::string_view member) {
    for (std::size_t i = 0; i < launch.substitution_count; ++i) {
        const Substitution& taken = launch.substitutions[i];
        if (launch.kernel->args[taken.arg].name == member) return plan.values[taken.value];
    }
    FAIL("the launch takes the call's own ", member);
    return plan.values[0];
}

}  // namespace

TEST_CASE("wgmma_w8: every shape and number of tokens has configs, and a fallback among them") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    for (const std::string& shape : code_shapes) {
        for (const std::int64_t tokens : {1, 2, 8, 9, 16, 33, 64, 65, 128, 333, 513, 2048, 100000}) {
            const Problem problem = quantized(shape + " tokens=" + std::to_string(tokens));
            INFO(to_string(problem));
            const Variant& variant = wgmma_w8(problem);
            const std::optional<Config> chosen = variant.fallback(problem, h100);
            REQUIRE(chosen);
            CHECK(why_not(problem, {&variant, *chosen}, h100) == "");
        }
    }
}

TEST_CASE("wgmma_w8: other formats, odd sizes and sums beyond 32 bits are others'") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    for (const std::string shape : {"dtype=bf16 format=w4a16 group=128 in=4096 out=4096",
                                    "dtype=bf16 format=w8a16 group=0 in=4096 out=4096",
                                    "dtype=bf16 format=w8a8 group=0 quantized_x=yes in=4088 out=4096",
                                    "dtype=bf16 format=w8a8 group=0 quantized_x=yes in=4096 out=1000",
                                    "dtype=bf16 format=w8a8 group=0 quantized_x=yes in=131072 out=4096"}) {
        const Problem problem = quantized(shape + " tokens=100");
        INFO(to_string(problem));
        CHECK(enumerate(problem, wgmma_w8(problem), h100).empty());
    }
}

TEST_CASE("wgmma_w8: sums are exact or promoted as the format needs it") {
    for_each_config([](const Problem& problem, const Candidate& candidate, const linear::gemm::Geometry& g) {
        const quantized_linear::QuantizedProblem p(problem);
        const std::int64_t promote = tunable(candidate, "promote");
        if (p.format == QuantFormat::w8a8) {
            CHECK(promote == 0);
            CHECK((g.tile_n == 8 || g.tile_n % 16 == 0));
        }
        if (p.group != 0) {
            CHECK(promote == 4);
            // A straight tile's columns and a left tile's 64 rows never cross the edge of a block of 128.
            if (!g.swapped) CHECK(128 % g.result_columns() == 0);
        }
        if (promote > 0) CHECK(g.sums() + g.tile_n / 2 <= 208);
        if (g.row_blocks() > 1) CHECK(g.stages() * 4 > promote);
    });
}

TEST_CASE("wgmma_w8: the ring fits, and maps describe codes by rows of 128 bytes") {
    for_each_config([](const Problem& problem, const Candidate& candidate, const linear::gemm::Geometry& g) {
        const quantized_linear::QuantizedProblem p(problem);
        const Plan plan = plan_of(problem, candidate);
        const Launch& launch = plan.launches[static_cast<std::size_t>(plan.launch_count - 1)];
        CHECK(g.stages() >= 3);
        CHECK(launch.shared_bytes == static_cast<std::uint32_t>(g.shared_bytes()));
        CHECK((g.shared_bytes() + 1024) * g.blocks_per_sm <= 228 * 1024);
        CHECK(plan.launch_count == (p.quantized_x ? 1 : 2));
        CHECK(plan.tensor_map_count == 5);
        CHECK((plan.tensor_maps[2].same_as == 1) == !p.gated);
        CHECK((plan.tensor_maps[3].same_as == 1) == (g.staged == 0));
        for (int i = 0; i < plan.tensor_map_count; ++i) {
            const TensorMap& map = plan.tensor_maps[static_cast<std::size_t>(i)];
            const bool is_out = map.pointer == quantized_linear::out;
            const bool is_x = i == 0 || i == 4;
            CHECK(map.extents[0] == (is_out ? p.out : p.in));
            CHECK(map.extents[1] == (is_out || is_x ? p.tokens : p.out));
            CHECK(size_bytes(map.dtype) == (is_out ? 2 : 1));
            CHECK(map.box[0] * size_bytes(map.dtype) == map.swizzle_bytes);
            CHECK((is_out || map.box[0] == 128));
            CHECK(map.box[1] <= 256);
        }
    });
}

TEST_CASE(
    "wgmma_w8: codes of x and their scales stand behind the parts of sums, and the product reads them") {
    for_each_config([](const Problem& problem, const Candidate& candidate, const linear::gemm::Geometry& g) {
        const quantized_linear::QuantizedProblem p(problem);
        const Plan plan = plan_of(problem, candidate);
        const bool splits = tunable(candidate, "tail_split") == 1;
        if (p.quantized_x) {
            CHECK(plan.tensor_maps[0].pointer == quantized_linear::x);
            CHECK((plan.workspace_bytes > 0) == splits);
            return;
        }
        const Launch& first = plan.launches[0];
        const Launch& second = plan.launches[1];
        CHECK(std::string(first.kernel->name) == "quantized_linear_quantize");
        CHECK(first.grid.x == p.tokens);
        CHECK(first.programmatic == second.programmatic);
        const PlanValue& codes = value_of(plan, first, "codes");
        const PlanValue& scales = value_of(plan, first, "code_scales");
        CHECK(codes.pointer == quantized_linear::workspace);
        CHECK(scales.pointer == quantized_linear::workspace);
        CHECK(codes.number % workspace_alignment == 0);
        CHECK(scales.number % workspace_alignment == 0);
        const std::int64_t blocks = second.grid.x;
        CHECK(codes.number >= (splits ? blocks * g.workspace_bytes() : 0));
        CHECK(scales.number >= codes.number + p.tokens * p.in);
        CHECK(plan.workspace_bytes == scales.number + p.tokens * p.groups() * 4);

        const TensorMap& map = plan.tensor_maps[0];
        CHECK(map.pointer == quantized_linear::workspace);
        CHECK(map.offset_bytes == codes.number);
        CHECK(map.stride_scalars[0] == TensorMap::no_gaps);
        CHECK(value_of(plan, second, "x_scales") == scales);
        CHECK(value_of(plan, second, "x_scale_stride").number == p.groups());
    });
}

TEST_CASE("wgmma_w8: what the copies write is what the tensor cores read, 128 codes a row") {
    std::set<std::tuple<int, int, bool, bool>> seen;
    for_each_config([&](const Problem&, const Candidate&, const linear::gemm::Geometry& g) {
        if (!seen.insert({g.tile_m, g.tile_n, g.gated, g.swapped}).second) return;
        const int stage = g.stages() - 1;
        const int left = g.left_at() + stage * g.left_bytes();
        const int right = g.right_at() + stage * g.right_bytes();
        REQUIRE(left % 1024 == 0);
        REQUIRE(right % 1024 == 0);
        SharedBytes shared;
        const int weights = g.swapped ? left : right;
        copy_box(shared, weights, 1, g.weight_box(), 1);
        if (g.gated) copy_box(shared, weights + g.weight_box() * 128, 2, g.weight_box(), 1);
        copy_box(shared, g.swapped ? right : left, 0, g.x_box(), 1);
        CHECK(static_cast<int>(shared.size()) == g.stage_bytes());
        for (const bool is_left : {true, false}) {
            const int rows = is_left ? g.tile_m : g.tile_n;
            const bool is_weight = is_left == g.swapped;
            for (int row = 0; row < rows; row += 3) {
                const bool upper = is_weight && g.gated && row >= rows / 2;
                for (int step = 0; step < 4; ++step) {
                    for (int column = 0; column < 32; column += 9) {
                        const Place want{is_weight ? upper ? 2 : 1 : 0, upper ? row - rows / 2 : row,
                                         32 * step + column};
                        CHECK(read_operand(shared, is_left ? left : right, row, step, column, 1) == want);
                    }
                }
            }
        }
    });
    CHECK(seen.size() > 10);
}
