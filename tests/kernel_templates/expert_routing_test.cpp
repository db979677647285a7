#include <doctest/doctest.h>

#include "kernel_templates/catalog.h"
#include "kernel_templates/expert_routing/blocks_plan.h"
#include "kernel_templates/expert_routing/one_block_plan.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/space.h"

using namespace hone;
using namespace hone::expert_routing;

namespace {

Problem problem_of(const std::string& text) { return *parse_problem("expert_routing dtype=bf16 " + text); }

std::string refusal(const std::string& text) {
    std::string error;
    CHECK_FALSE(parse_problem("expert_routing dtype=bf16 " + text, &error));
    return error;
}

std::string winner(const std::string& text, Arch arch) {
    return std::string(fallback(problem_of(text), *representative_device(arch))->variant->name);
}

}  // namespace

TEST_CASE("a token goes to no more experts than there are, and pairs stay below 2^24") {
    CHECK(refusal("experts=8 top_k=9 tokens=1").find("top_k is 9; allowed: at most experts, 8") !=
          std::string::npos);
    CHECK(refusal("experts=512 top_k=32 tokens=600000").find("allowed: at most 2^24") != std::string::npos);
    CHECK(problem_of("experts=8 top_k=8 tokens=1").family != nullptr);
    CHECK(problem_of("experts=512 top_k=32 tokens=524288").family != nullptr);
}

TEST_CASE("few pairs take one launch, many take three, on every chip") {
    for (const Arch arch : supported_archs()) {
        CHECK(winner("experts=8 top_k=2 tokens=1", arch) == "one_block");
        CHECK(winner("experts=512 top_k=32 tokens=16", arch) == "one_block");
        CHECK(winner("experts=128 top_k=8 tokens=64", arch) == "one_block");
        CHECK(winner("experts=128 top_k=8 tokens=65", arch) == "blocks");
        CHECK(winner("experts=8 top_k=2 tokens=8192", arch) == "blocks");
    }
}

TEST_CASE("one block has room for every pair that it may get, and blocks for every token") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    for (const char* text : {"experts=128 top_k=8 tokens=17", "experts=512 top_k=3 tokens=300",
                             "experts=9 top_k=7 tokens=1000", "experts=64 top_k=32 tokens=2"}) {
        const Problem problem = problem_of(text);
        const RoutingProblem p(problem);
        for (const Config& config : enumerate(problem, one_block, h100))
            CHECK(hone::values_of<RoutingConfig>(config).pairs >= p.places());
        for (const Config& config : enumerate(problem, blocks, h100)) {
            const auto c = hone::values_of<RoutingConfig>(config);
            const std::int64_t tokens = c.pairs / p.top_k;
            CHECK(tokens >= 1);
            CHECK(tokens * p.top_k <= c.pairs);
            CHECK(parts(p, c) * tokens >= p.tokens);
            CHECK(c.threads >= p.experts);
        }
    }
}

TEST_CASE(
    "neighbouring experts' words are in distinct banks, and the workspace holds what launches hand on") {
    for (const int pairs : {64, 128, 256, 512, 1024}) {
        CHECK(member_pitch(pairs) % 2 == 1);
        CHECK(member_pitch(pairs) >= member_words(pairs));
        CHECK(member_words(pairs) * 32 == pairs);
    }
    const Problem problem = problem_of("experts=128 top_k=8 tokens=4096");
    const RoutingConfig c{.threads = 128, .pairs = 256};
    const Plan plan = blocks_plan(RoutingProblem(problem), c, *representative_device({9, 0, true}));
    CHECK(plan.launch_count == 3);
    CHECK(plan.launches[0].grid.x == 128);
    CHECK(plan.launches[1].grid.x == 1);
    CHECK(plan.launches[2].grid.x == 128);
    CHECK(plan.workspace_bytes == 4 * (4096 * 8 + 128 * 128));
}
