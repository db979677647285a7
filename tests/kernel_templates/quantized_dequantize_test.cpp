#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/quantized_linear/dequantize/plan.h"
#include "tests/kernel_templates/linear_cases.h"

using namespace hone;
using namespace hone::linear_cases;
using quantized_linear::unpacked::Task;
using quantized_linear::unpacked::Tasks;

namespace {

const std::vector<std::string> packed_shapes{
    "dtype=bf16 format=w4a16 group=128 in=4096 out=4096",
    "dtype=fp16 format=w4a16 group=32 zeros=yes bias=yes residual=yes activation=gelu_erf in=4096 out=1000",
    "dtype=bf16 format=w4a16 group=64 norm=yes gated=yes activation=silu in=4096 out=14336",
    "dtype=bf16 format=w4a16 zeros=yes in=1048 out=3584",
    "dtype=fp16 format=w8a16 in=14336 out=4096",
    "dtype=bf16 format=w8a16 gated=yes activation=silu in=1000 out=2056"};

Problem quantized(const std::string& text) { return *parse_problem("quantized_linear " + text); }
const Variant& dequantize(const Problem& problem) { return *find_variant(*problem.family, "dequantize"); }
const DeviceTraits h100 = *representative_device({9, 0, true});

/// Calls visit(problem, candidate, plan) for some configs of all shapes and some numbers of tokens.
template <class Visit>
void for_each_config(Visit visit) {
    for (const std::string& shape : packed_shapes) {
        for (const std::int64_t tokens : {257, 512, 2048, 10000}) {
            const Problem problem = quantized(shape + " tokens=" + std::to_string(tokens));
            const Variant& variant = dequantize(problem);
            const std::vector<Config>& configs = test::space_on_h100(problem, variant);
            CHECK(!configs.empty());
            for (std::size_t i = 0; i < configs.size(); i += 1 + configs.size() / 100) {
                const Candidate candidate{&variant, configs[i]};
                INFO(to_string(problem) << " | " << to_string(candidate));
                visit(problem, candidate, variant.plan(problem, configs[i], h100));
            }
        }
    }
}

/// The workspace's byte that a launch takes for member `member` of its kernel's struct.
std::int64_t offset_of(const Plan& plan, const Launch& launch, std::size_t member) {
    const auto taken = std::ranges::find(launch.substitutions, member, &Substitution::arg);
    REQUIRE(taken != launch.substitutions.end());
    REQUIRE(plan.values[taken->value].pointer == quantized_linear::workspace);
    return plan.values[taken->value].number;
}

double best_us(const Problem& problem, std::string_view name) {
    const Variant& variant = *find_variant(*problem.family, name);
    double best = 1e9;
    for (const Config& config : enumerate(problem, variant, h100))
        best = std::min(best, variant.predict_us(problem, config, h100));
    return best;
}

}  // namespace

TEST_CASE("dequantize: packed weights, whole rows of 16 bytes and many tokens; others are refused in words") {
    const std::string sizes = " in=4096 out=4096";
    const Problem right = quantized("dtype=bf16 format=w4a16 group=128 tokens=512" + sizes);
    const Candidate candidate{&dequantize(right), enumerate(right, dequantize(right), h100).at(0)};
    CHECK(why_not(right, candidate, h100) == "");
    const auto reason = [&](const std::string& text) {
        return std::string(why_not(quantized(text), candidate, h100));
    };
    const auto says = [&](const std::string& text, const char* words) {
        INFO(text);
        CHECK(reason(text).find(words) != std::string::npos);
        CHECK(enumerate(quantized(text), candidate.variant[0], h100).empty());
    };
    says("dtype=bf16 format=w8a8 tokens=512" + sizes, "codes of 4 or 8 bits that stand in blocks");
    says("dtype=bf16 format=fp8 tokens=512" + sizes, "codes of 4 or 8 bits that stand in blocks");
    says("dtype=bf16 format=w4a16 tokens=256" + sizes, "more than 256 tokens");
    says("dtype=bf16 format=w4a16 in=4100 out=4096 tokens=512", "multiples of 8");
    says("dtype=bf16 format=w8a16 in=4096 out=4100 tokens=512", "multiples of 8");
    says("dtype=bf16 format=w4a16 in=262144 out=8192 tokens=512", "a 32nd of the device's memory");
    DeviceTraits small = h100;
    small.memory_bytes = std::int64_t{32} * 4096 * 4096 * 2;
    CHECK(why_not(right, candidate, small) == "");
    --small.memory_bytes;
    CHECK(why_not(right, candidate, small) != "");
}

TEST_CASE("dequantize: nothing takes such a workspace that has not been measured") {
    for (const std::string& shape : packed_shapes) {
        const Problem problem = quantized(shape + " tokens=10000");
        CHECK(!dequantize(problem).fallback(problem, h100));
        REQUIRE(fallback(problem, h100));
        CHECK(std::string(fallback(problem, h100)->variant->name) != "dequantize");
    }
}

TEST_CASE("dequantize: every block of every weight is one task's, and the first rows come last") {
    for (const int bits : {4, 8}) {
        for (const int products : {1, 2}) {
            for (const auto& [in, out] : {std::pair{64, 64}, {8, 8}, {1000, 136}, {320, 4096}, {4096, 192}}) {
                const Tasks tasks{.in = in, .out = out, .bits = bits, .products = products};
                std::set<std::tuple<int, int, int>> seen;
                int above = out;
                for (int index = 0; index < tasks.count(); ++index) {
                    const Task task = tasks.task(index);
                    CHECK(task.row_block <= above);
                    above = task.row_block;
                    for (int i = 0; i < tasks.together(); ++i) {
                        if (task.column_block + i >= quantized_linear::whole_blocks(in)) continue;
                        const bool fresh =
                            seen.emplace(task.product, task.row_block, task.column_block + i).second;
                        CHECK(fresh);
                    }
                    CHECK((task.product >= 0 && task.product < products));
                    CHECK((task.row_block >= 0 && task.row_block < quantized_linear::whole_blocks(out)));
                    CHECK(task.column_block < quantized_linear::whole_blocks(in));
                }
                CHECK(static_cast<long long>(seen.size()) ==
                      products * quantized_linear::whole_blocks(out) * quantized_linear::whole_blocks(in));
            }
        }
    }
}

TEST_CASE("dequantize: a launch in front writes what the product's maps describe") {
    for_each_config([](const Problem& problem, const Candidate& candidate, const Plan& plan) {
        const quantized_linear::QuantizedProblem p(problem);
        REQUIRE(plan.launch_count == (p.norm ? 3 : 2));
        const Launch& first = plan.launches[p.norm ? 1 : 0];
        const Launch& product = plan.launches[p.norm ? 2 : 1];
        CHECK(std::string(first.kernel->name) == "quantized_linear_dequantize");
        CHECK(std::string(product.kernel->name) == "quantized_linear_dequantized");
        CHECK(first.block.x == 128);
        CHECK(first.programmatic == product.programmatic);
        const Tasks tasks{.in = static_cast<int>(p.in),
                          .out = static_cast<int>(p.out),
                          .bits = p.bits(),
                          .products = p.gated ? 2 : 1};
        CHECK(first.grid.x == static_cast<std::uint32_t>(tasks.count()));

        const linear::gemm::Geometry g =
            linear::gemm::geometry(p.dense(), values_of<linear::gemm::WgmmaConfig>(candidate.config));
        const std::int64_t bytes = p.in * p.out * 2;
        const std::int64_t partials =
            tunable(candidate, "tail_split") == 1 ? product.grid.x * g.workspace_bytes() : 0;
        std::int64_t end = partials;
        for (std::size_t i = 0; i < static_cast<std::size_t>(p.products()); ++i) {
            const TensorMap& map = plan.tensor_maps[1 + i];
            const std::int64_t offset = offset_of(plan, first, quantized_linear::numbers_member + i);
            CHECK(map.pointer == quantized_linear::workspace);
            CHECK(map.offset_bytes == offset);
            CHECK(map.stride_scalars[0] == TensorMap::no_gaps);
            CHECK(map.extents[0] == p.in);
            CHECK(map.extents[1] == p.out);
            CHECK(offset % workspace_alignment == 0);
            CHECK(offset >= end);
            end = offset + bytes;
        }
        if (p.norm) {
            CHECK(plan.tensor_maps[0].pointer == quantized_linear::workspace);
            CHECK(plan.tensor_maps[0].offset_bytes >= end);
            end = plan.tensor_maps[0].offset_bytes + p.tokens * p.in * 2;
        } else {
            CHECK(plan.tensor_maps[0].pointer == quantized_linear::x);
        }
        CHECK(plan.workspace_bytes == end);
        CHECK(product.shared_bytes == static_cast<std::uint32_t>(g.shared_bytes()));
    });
}

TEST_CASE("dequantize: predicted to win with many thousands of tokens, not with a few hundred") {
    const auto wins = [](const std::string& text) {
        const Problem problem = quantized("dtype=bf16 format=w4a16 group=128 " + text);
        return best_us(problem, "dequantize") < best_us(problem, "wgmma_w16");
    };
    CHECK(wins("in=4096 out=4096 tokens=16384"));
    CHECK(wins("in=4096 out=28672 tokens=16384"));
    CHECK_FALSE(wins("in=4096 out=28672 tokens=512"));
    CHECK_FALSE(wins("in=4096 out=4096 tokens=257"));
}
