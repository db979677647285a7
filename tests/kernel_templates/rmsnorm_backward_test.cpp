#include "kernel_templates/rmsnorm_backward/backward.h"

#include <doctest/doctest.h>

#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"

using namespace hone;

namespace {

Problem problem_of(const std::string& text) { return *parse_problem("rmsnorm_backward " + text); }

}  // namespace

TEST_CASE("the floor of the gradients counts each tensor once, and no workspace") {
    const std::int64_t row = 4096 * 2;
    CHECK(problem_of("dtype=bf16 hidden=4096 rows=3")
              .family->work(problem_of("dtype=bf16 hidden=4096 rows=3"))
              .bytes == 3 * 3 * row + 2 * row);  // dy, x, dx; weight and dweight
    const Problem with_dsum = problem_of("dtype=bf16 residual=yes hidden=4096 rows=3");
    CHECK(with_dsum.family->work(with_dsum).bytes == 4 * 3 * row + 2 * row);
}

TEST_CASE("every plan has room for its partial sums, and no more blocks than rows need") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    for (const std::int64_t rows : {1, 7, 132, 133, 4096}) {
        const Problem problem = problem_of("dtype=fp32 hidden=1000 rows=" + std::to_string(rows));
        for (const auto& [candidate, predicted] : ranked_space(problem, h100)) {
            const Plan plan = candidate.variant->plan(problem, candidate.config, h100);
            const std::int64_t columns_per_block =
                candidate.variant->name == "held_rows" ? candidate.config[7] * 4 : candidate.config[4] * 4;
            const Launch& last = plan.launches[static_cast<std::size_t>(plan.launch_count - 1)];
            CHECK(last.grid.x * columns_per_block >= 1000);
            if (candidate.variant->name == "held_rows") {
                const std::int64_t groups = candidate.config[0] / candidate.config[1];
                CHECK(plan.workspace_bytes == (64 + plan.launches[0].grid.x * std::int64_t{1000}) * 4);
                CHECK((plan.launches[0].grid.x - 1) * groups < rows);
            } else {
                CHECK(plan.launches[0].grid.x == rows);
                CHECK(plan.workspace_bytes == (candidate.config[2] * 1000 + 2 * rows) * 4);
            }
        }
    }
}

TEST_CASE("rows too long for registers fall back to two passes") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    CHECK(fallback(problem_of("dtype=bf16 hidden=4096 rows=64"), h100)->variant->name == "held_rows");
    CHECK(fallback(problem_of("dtype=fp32 hidden=262144 rows=64"), h100)->variant->name == "two_pass");
}
