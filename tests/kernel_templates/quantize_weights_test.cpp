#include "kernel_templates/quantize_weights/quantize_weights.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "kernel_templates/catalog.h"
#include "kernel_templates/quantize_weights/scale_rule.cuh"
#include "kernel_templates/quantize_weights/trials.h"
#include "kernel_templates/quantize_weights/warps_plan.h"

using namespace hone;
using namespace hone::quantize_weights;

namespace {

Problem problem_of(const std::string& text) { return *parse_problem("quantize_weights " + text); }

Plan plan_of(const Problem& problem) {
    const DeviceTraits traits = *representative_device({9, 0, true});
    const Candidate candidate = *fallback(problem, traits);
    return candidate.variant->plan(problem, candidate.config, traits);
}

TEST_CASE("every scale and every block of codes has somebody who makes it") {
    const Plan groups = plan_of(problem_of("dtype=bf16 format=w4a16 group=32 scale_dtype=bf16 in=96 out=70"));
    CHECK(groups.launches[1].grid.x == 128 * 4 / 8);  // padding to 128 columns has scales, too
    CHECK(groups.launches[2].grid.x == 2 * 2);
    CHECK(groups.workspace_bytes == maxima_offset);

    const Plan rows = plan_of(problem_of("dtype=bf16 format=w8a8 in=2049 out=70"));
    CHECK(rows.launches[0].grid.x == 1);
    CHECK(rows.launches[1].grid.x == 27);  // 3 spans of 1024 columns a row, 8 warps a block
    CHECK(rows.launches[2].grid.x == 3 * 70);
    CHECK(rows.workspace_bytes == maxima_offset + 70 * 4);
    CHECK(plan_of(problem_of("dtype=bf16 format=w8a8 one_scale=yes in=2049 out=70")).workspace_bytes ==
          maxima_offset + 4);
    CHECK(plan_of(problem_of("dtype=bf16 format=fp8 group=128 in=256 out=130")).workspace_bytes ==
          maxima_offset + 4 * 4);
}

TEST_CASE("grids stay below the largest that there is") {
    for (const char* text :
         {"dtype=bf16 format=w4a16 group=32 scale_dtype=bf16 in=65536 out=1048576",
          "dtype=bf16 format=w8a8 in=65536 out=1048576", "dtype=bf16 format=w8a16 in=1 out=1048576"}) {
        const Problem problem = problem_of(text);
        for (const std::int64_t threads : {64, 128, 256}) {
            const WeightProblem p(problem);
            const Plan plan = warps_plan(p, {.threads = threads}, *representative_device({9, 0, true}));
            const std::int64_t warps_launched = std::int64_t{plan.launches[1].grid.x} * (threads / 32);
            const std::int64_t least = p.is_w4() ? p.out * p.group_places() : p.out;
            CHECK(warps_launched >= least);
            for (const Launch& launch : plan.launches.first(plan.launch_count)) CHECK(launch.grid.x < 1U << 31);
        }
    }
}

TEST_CASE("parts of a scale become smaller, and reach further for long groups") {
    CHECK(part_count(128) == 35);
    CHECK(part_count(1 << 18) == most_parts);
    CHECK(part(34) > 0.5F);
    CHECK(part(35) <= 0.5F);
    CHECK(part(most_parts - 1) > 0.02F);
    const auto trials_of = [](const char* text) { return trials(WeightProblem(problem_of(text))); };
    CHECK(trials_of("dtype=bf16 format=w4a16 group=128 scale_dtype=bf16 in=128 out=1") ==
          1 + 2 * (35 + 8) + 17 + 3);
    CHECK(trials_of("dtype=bf16 format=w8a8 in=128 out=1") == 1);
}

TEST_CASE("units bring the largest magnitude to between 1 and 4") {
    for (const float largest : {0x1p-100F, 1e-20F, 0.02F, 1.0F, 3.0F, 1e20F, 3e38F}) {
        const Range range = Range::of(-largest, largest / 2);
        CHECK(-range.low >= 1);
        CHECK(-range.low < 4);
        CHECK(range.scale_of(-range.low) == largest);
        CHECK(range.unit_of(largest) == -range.low);
    }
}

}  // namespace
