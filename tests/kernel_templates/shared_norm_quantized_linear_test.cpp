#include "kernel_templates/shared_norm_quantized_linear/shared_norm_quantized_linear.h"

#include <doctest/doctest.h>

#include <string>

#include "kernel_templates/catalog.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/quantized_linear/variants.h"
#include "kernel_templates/shared_norm_quantized_linear/ring_plan.h"
#include "kernel_templates/space.h"

using namespace hone;

namespace {

Problem problem_of(const std::string& text) { return *parse_problem("shared_norm_quantized_linear " + text); }
std::string refused(const std::string& text) {
    std::string error;
    return parse_problem("shared_norm_quantized_linear " + text, &error) ? "" : error;
}

const std::string front =
    "dtype=bf16 format=w4a16 group=128 next_norm=yes residual=yes in=4096 out=4096 tokens=8";
const std::string behind =
    "dtype=bf16 format=w4a16 group=128 norm=yes gated=yes activation=silu in=4096 out=14336 tokens=8";
const DeviceTraits& h100() {
    static const DeviceTraits traits = *representative_device({9, 0, true});
    return traits;
}

}  // namespace

TEST_CASE(
    "shared_norm_quantized_linear refuses codes of x, columns that are no whole slots and other types") {
    const std::string sizes = " in=64 out=64 tokens=1";
    CHECK(refused("dtype=bf16 format=w8a8 norm=yes" + sizes).find("format=w4a16, w8a16") !=
          std::string::npos);
    CHECK(refused("dtype=bf16 format=w4a16 quantized_x=yes norm=yes" + sizes).find("quantized_x=yes") !=
          std::string::npos);
    CHECK(refused("dtype=fp16 format=w4a16 norm=yes" + sizes).find("dtype=fp16") != std::string::npos);
    CHECK(refused("dtype=bf16 format=w4a16 next_norm=yes in=64 out=72 tokens=1").find("out is 72") !=
          std::string::npos);
    CHECK(refused("dtype=bf16 format=w4a16 group=48 norm=yes" + sizes).find("group") != std::string::npos);
    CHECK(refused("dtype=bf16 format=w8a16 norm=yes" + sizes).empty());
}

TEST_CASE("what a quantized product has of a norm is what it takes and gives beside quantized_linear's") {
    CHECK(to_string(shared_norm_quantized_linear::quantized_problem(problem_of(front))) ==
          "quantized_linear dtype=bf16 format=w4a16 group=128 zeros=no quantized_x=no norm=no "
          "activation=none gated=no bias=no residual=yes in=4096 out=4096 tokens=8");
    const auto present = [](const std::string& text) {
        std::string names;
        const Problem problem = problem_of(text);
        for (const Argument& argument : problem.family->arguments(problem)) {
            if (argument.present) names += std::string(argument.name) + " ";
        }
        return names;
    };
    CHECK(present(front) == "x norm_weight weight scales residual out workspace scaled squares ");
    CHECK(present(behind) == "x weight scales up up_scales out workspace norm_squares ");
}

TEST_CASE("the quantized ring has the space, the winners and the launches of quantized_linear's") {
    for (const std::string& text : {front, behind}) {
        const Problem problem = problem_of(text);
        const Problem plain = problem.family->kin(problem).value();
        CHECK(plain == shared_norm_quantized_linear::quantized_problem(problem));
        const bool takes = text == behind;
        std::size_t left_out = 0;
        for (const Config& config : enumerate(plain, quantized_linear::ring, h100())) {
            const Candidate ours = problem.family->from_kin(problem, {&quantized_linear::ring, config});
            CHECK(ours == Candidate{&shared_norm_quantized_linear::ring, config});
            if (!allowed(problem, ours, h100())) {
                ++left_out;
                continue;
            }
            const Plan given = shared_norm_quantized_linear::ring.plan(problem, config, h100());
            const Plan theirs = quantized_linear::ring.plan(plain, config, h100());
            REQUIRE(given.launch_count == 1);
            REQUIRE(given.launches[0].grid == theirs.launches[0].grid);
            REQUIRE(given.launches[0].block == theirs.launches[0].block);
            REQUIRE(given.launches[0].shared_bytes == theirs.launches[0].shared_bytes + (takes ? 4 * 8 : 0));
            REQUIRE(given.tensor_maps[0] == theirs.tensor_maps[0]);
        }
        // Those alone whose shared memory has no room for factors.
        CHECK(left_out * 100 <= enumerate(plain, quantized_linear::ring, h100()).size());
    }
    const Problem problem = problem_of(front);
    const Candidate other{find_variant(*problem.family->kin(problem)->family, "stream"), {}};
    CHECK(problem.family->from_kin(problem, other) == other);  // which is none of the family's
}
