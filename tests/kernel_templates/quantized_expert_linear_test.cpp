#include "kernel_templates/quantized_expert_linear/quantized_expert_linear.h"

#include <doctest/doctest.h>

#include <string>

#include "kernel_templates/catalog.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/quantized_expert_linear/variants.h"
#include "kernel_templates/quantized_expert_linear/wgmma_w16/plan.h"
#include "kernel_templates/quantized_expert_linear/wgmma_w8/plan.h"
#include "kernel_templates/space.h"

using namespace hone;
using namespace hone::quantized_expert_linear;

namespace {

const DeviceTraits h100 = *representative_device({9, 0, true});

Problem problem_of(const std::string& text) {
    return *parse_problem("quantized_expert_linear dtype=bf16 " + text);
}

std::string refusal(const std::string& text) {
    std::string error;
    CHECK_FALSE(parse_problem("quantized_expert_linear " + text, &error));
    return error;
}

std::string chosen(const std::string& text, Arch arch) {
    return std::string(fallback(problem_of(text), *representative_device(arch))->variant->name);
}

constexpr const char* formats[] = {"format=w4a16 group=128 ", "format=w4a16 group=32 zeros=yes ",
                                   "format=w8a16 ", "format=fp8 group=128 ", "format=w8a8 "};
constexpr const char* sizes[] = {
    "experts=8 top_k=2 in=4096 out=14336 tokens=16 activation=silu gated=yes gather=yes",
    "experts=128 top_k=8 in=768 out=2048 tokens=600 combine=yes",
    "experts=8 top_k=2 in=14336 out=4096 tokens=4096 combine=yes gather=yes",
};

}  // namespace

TEST_CASE("what formats and experts do not allow is refused by name") {
    CHECK(
        refusal("dtype=bf16 format=w4a16 group=48 experts=4 top_k=2 in=96 out=8 tokens=1").find("group=48") !=
        std::string::npos);
    CHECK(
        refusal("dtype=bf16 format=w8a8 group=32 experts=4 top_k=2 in=96 out=8 tokens=1").find("group=32") !=
        std::string::npos);
    CHECK(
        refusal("dtype=bf16 format=fp8 group=64 experts=4 top_k=2 in=128 out=8 tokens=1").find("group=64") !=
        std::string::npos);
    CHECK(
        refusal("dtype=bf16 format=fp8 zeros=yes experts=4 top_k=2 in=96 out=8 tokens=1").find("zeros=yes") !=
        std::string::npos);
    CHECK(refusal("dtype=bf16 format=w8a8 experts=4 top_k=5 in=96 out=8 tokens=1").find("top_k is 5") !=
          std::string::npos);
    CHECK(refusal("dtype=fp32 format=w8a8 experts=4 top_k=2 in=96 out=8 tokens=1").find("dtype") !=
          std::string::npos);
}

TEST_CASE("an expert's product may be off by as much as the same product of a layer without experts") {
    for (const std::string dtype : {"bf16 ", "fp16 "}) {
        for (const std::string format : formats) {
            for (const std::string gate : {"", " activation=silu gated=yes"}) {
                const std::string same = "dtype=" + dtype + format + "in=256 out=200 tokens=3" + gate;
                CAPTURE(same);
                const Problem expert = *parse_problem("quantized_expert_linear experts=5 top_k=2 " + same);
                const bool packed = QuantizedExpertProblem(expert).is_packed();
                const Problem layer =
                    *parse_problem("quantized_linear " + same + (packed ? "" : " quantized_x=yes"));
                CHECK(expert.family->tolerance(expert, 0).relative_l2 ==
                      doctest::Approx(layer.family->tolerance(layer, 0).relative_l2));
            }
        }
    }
}

TEST_CASE("each expert's codes and scales stand behind those of the one before") {
    const auto shape = [](const std::string& text, int pointer) {
        const Problem problem = problem_of(text + " experts=5 top_k=2 in=256 out=200 tokens=3");
        return problem.family->arguments(problem)[static_cast<std::size_t>(pointer)].shape;
    };
    using Shape = std::array<std::int64_t, 4>;
    CHECK(shape("format=w4a16 group=128", weight) == Shape{1, 5, 4, 4 * 2048});
    CHECK(shape("format=w4a16 group=128", scales) == Shape{1, 5, 4 * 2, 64});
    CHECK(shape("format=w8a16", weight) == Shape{1, 5, 4, 4 * 4096});
    CHECK(shape("format=w8a16", scales) == Shape{1, 5, 1, 200});
    CHECK(shape("format=fp8 group=128", weight) == Shape{1, 5, 200, 256});
    CHECK(shape("format=fp8 group=128", scales) == Shape{1, 5, 2, 2});
}

TEST_CASE("codes of x are made in front, by place, and results that are combined stand before them") {
    for (const char* format : formats) {
        const bool is_packed = std::string(format).find("a16") != std::string::npos;
        for (const char* option : {"", "gather=yes ", "combine=yes ", "gather=yes combine=yes "}) {
            const Problem problem =
                problem_of(std::string(format) + option + "experts=8 top_k=2 in=128 out=96 tokens=33");
            const bool combines = std::string(option).find("combine") != std::string::npos;
            for (const Variant* variant : problem.family->variants) {
                for (const Config& config : enumerate(problem, *variant, h100)) {
                    const Plan plan = variant->plan(problem, config, h100);
                    REQUIRE(plan.launch_count == 1 + (is_packed ? 0 : 1) + (combines ? 1 : 0));
                    if (!is_packed) {
                        CHECK(std::string(plan.launches[0].kernel->name) == "quantized_expert_linear_codes");
                        CHECK(plan.launches[0].grid.x == 66);
                    }
                    const QuantizedExpertProblem p(problem);
                    CHECK(plan.workspace_bytes == p.room().bytes);
                    CHECK(p.room().bytes >= (combines ? 66 * 96 * 2 : 0) + (is_packed ? 0 : 66 * (128 + 4)));
                    CHECK(p.room().codes_at % 256 == 0);
                    CHECK(p.room().scales_at % 256 == 0);
                }
            }
        }
    }
}

TEST_CASE("rows of x are copied in front where that is asked for, behind results that are combined") {
    for (const char* option : {"gather=yes ", "gather=yes combine=yes "}) {
        const Problem problem = problem_of(std::string("format=w4a16 group=32 ") + option +
                                           "experts=4 top_k=2 in=128 out=96 tokens=200");
        const bool combines = std::string(option).find("combine") != std::string::npos;
        int copied = 0;
        for (const Config& config : enumerate(problem, wgmma_w16, h100)) {
            if (hone::values_of<WgmmaW16Config>(config).copied_x == 0) continue;
            ++copied;
            const Plan plan = wgmma_w16.plan(problem, config, h100);
            REQUIRE(plan.launch_count == (combines ? 3 : 2));
            CHECK(std::string(plan.launches[0].kernel->name) == "expert_linear_copies");
            CHECK(plan.launches[0].grid.x == 400);
            CHECK(plan.launches[0].programmatic == plan.launches[1].programmatic);
            CHECK(plan.tensor_maps[0].pointer == workspace);
            CHECK(plan.tensor_maps[0].extents[1] == 400);
            CHECK(plan.tensor_maps[0].offset_bytes == (combines ? 400 * 96 * 2 : 0));
            CHECK(plan.workspace_bytes == plan.tensor_maps[0].offset_bytes + 400 * 128 * 2);
        }
        CHECK(copied > 0);
    }
}

TEST_CASE("layers of models run on tensor cores, on every chip that has them") {
    const std::string lead =
        "experts=8 top_k=2 in=4096 out=14336 activation=silu gated=yes gather=yes tokens=";
    const Arch h = {9, 0, true};
    CHECK(chosen("format=w4a16 group=128 " + lead + "1", h) == "mma");
    CHECK(chosen("format=w4a16 group=128 " + lead + "256", h) == "wgmma_w16");
    CHECK(chosen("format=w8a16 " + lead + "4096", h) == "wgmma_w16");
    CHECK(chosen("format=fp8 group=128 " + lead + "1", h) == "mma");
    CHECK(chosen("format=fp8 group=128 " + lead + "256", h) == "wgmma_w8");
    CHECK(chosen("format=w8a8 " + lead + "4096", h) == "wgmma_w8");
    for (const char* format : formats) {
        CHECK(chosen(format + lead + "512", {8, 0, false}) == "mma");
        const bool is_packed = std::string(format).find("a16") != std::string::npos;
        CHECK(chosen(format + lead + "512", {7, 5, false}) == (is_packed ? "plain" : "mma"));  // bf16
    }
    CHECK(chosen("format=w4a16 experts=8 top_k=2 in=4096 out=33 tokens=4096", h) == "mma");
    CHECK(chosen("format=w8a8 experts=8 top_k=2 in=100 out=33 tokens=4096", h) == "plain");
}

TEST_CASE("many rows an expert take tiles of codes that level 2 can feed") {
    for (const char* sizes : {"experts=8 top_k=2 in=14336 out=4096 tokens=4096",
                              "experts=32 top_k=4 in=2880 out=2880 tokens=4096"}) {
        const std::optional<Candidate> chosen =
            fallback(problem_of(std::string("format=w4a16 combine=yes ") + sizes), h100);
        REQUIRE(chosen);
        CHECK(chosen->variant == &wgmma_w16);
        const auto c = hone::values_of<WgmmaW16Config>(chosen->config);
        INFO(to_string(*chosen));
        CHECK(c.tile_m >= 128);
        CHECK(c.tile_n >= 192);
    }
}

TEST_CASE("tiles of the warpgroup variants fit memory, and boxes end with the rows that there are") {
    for (const char* format : formats) {
        for (const char* text : sizes) {
            const Problem problem = problem_of(format + std::string(text));
            const QuantizedExpertProblem p(problem);
            const auto check = [&](const linear::gemm::Geometry& g, const Plan& plan,
                                   const TensorMap& x_map) {
                const bool is_first =
                    std::string(plan.launches[0].kernel->name).find("wgmma") != std::string::npos;
                const Launch& launch = plan.launches[is_first ? 0 : 1];
                CHECK(g.stages() >= 3);
                CHECK(g.blocks_per_sm * (g.shared_bytes() + 1024) <= h100.shared_bytes_per_sm);
                CHECK(launch.shared_bytes == static_cast<std::uint32_t>(g.shared_bytes()));
                CHECK(launch.grid.x <= h100.sm_count * g.blocks_per_sm);
                CHECK(x_map.box[1] <= x_map.extents[1]);
            };
            for (const Config& config : enumerate(problem, wgmma_w16, h100)) {
                const Plan plan = wgmma_w16.plan(problem, config, h100);
                check(geometry(p, hone::values_of<WgmmaW16Config>(config)), plan, plan.tensor_maps[0]);
            }
            for (const Config& config : enumerate(problem, wgmma_w8, h100)) {
                const Plan plan = wgmma_w8.plan(problem, config, h100);
                check(geometry(p, hone::values_of<WgmmaW8Config>(config)), plan, plan.tensor_maps[1]);
                CHECK(plan.tensor_maps[0].extents[1] == p.experts * p.out);
                CHECK(plan.tensor_maps[1].offset_bytes == p.room().codes_at);
            }
            CHECK(enumerate(problem, wgmma_w16, h100).empty() == !p.is_packed());
            CHECK(enumerate(problem, wgmma_w8, h100).empty() == p.is_packed());
        }
    }
}

TEST_CASE("the floor counts the codes of experts that have rows, once") {
    const Problem one = problem_of("format=w4a16 group=128 experts=8 top_k=2 in=4096 out=1024 tokens=1");
    const Problem all = problem_of("format=w4a16 group=128 experts=8 top_k=2 in=4096 out=1024 tokens=64");
    const double weight = 4096.0 * 1024 * (4 + 16.0 / 128) / 8;
    CHECK(one.family->work(one).bytes >= 2 * weight);
    CHECK(one.family->work(one).bytes < 2.1 * weight);
    CHECK(all.family->work(all).bytes >= 8 * weight);
    CHECK(all.family->work(all).flops == 2.0 * 128 * 4096 * 1024);
}
