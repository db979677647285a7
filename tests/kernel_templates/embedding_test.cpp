#include "kernel_templates/embedding/rows_plan.h"

#include <doctest/doctest.h>

#include "kernel_templates/catalog.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/space.h"

using namespace hone;

namespace {

Problem problem_of(const std::string& text) { return *parse_problem("embedding " + text); }

}  // namespace

TEST_CASE("the floor of an embedding is what it reads and writes, not its tables") {
    const Problem plain = problem_of("dtype=bf16 hidden=4096 tokens=3 vocabulary=128256");
    CHECK(plain.family->work(plain).bytes == 3 * 2 * 4096 * 2 + 3 * 4);
    const Problem both =
        problem_of("dtype=fp32 index=int64 scale=yes positions=yes hidden=768 tokens=5 position_rows=1024");
    CHECK(both.family->work(both).bytes == 5 * 3 * 768 * 4 + 5 * 2 * 8);
}

TEST_CASE("ids of tuning reach over the whole table and stay within it") {
    for (const char* tokens : {"1", "7", "4096", "1000000"}) {
        const Problem problem = problem_of(std::string("dtype=bf16 positions=yes hidden=64 vocabulary=50257 "
                                                       "position_rows=1024 tokens=") +
                                           tokens);
        const std::vector<Argument> arguments = problem.family->arguments(problem);
        const double most = static_cast<double>(arguments[embedding::ids].elements() - 1);
        CHECK(most * arguments[embedding::ids].fill_scale <= 50256);
        CHECK(most * arguments[embedding::position_ids].fill_scale <= 1023);
        CHECK(arguments[embedding::ids].dtype == index_dtype);
    }
    const Problem wide = problem_of("dtype=bf16 index=int64 hidden=64 tokens=1");
    CHECK(wide.family->arguments(wide)[embedding::ids].dtype == wide_index_dtype);
}

TEST_CASE("every token has its lanes") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    for (const char* tokens : {"1", "7", "130", "4096"}) {
        const Problem problem = problem_of(std::string("dtype=bf16 hidden=2304 tokens=") + tokens);
        const std::int64_t wanted = embedding::EmbeddingProblem(problem).tokens;
        for (const Config& config : enumerate(problem, embedding::rows, h100)) {
            const auto c = values_of<embedding::RowsConfig>(config);
            const std::int64_t blocks = embedding::rows.plan(problem, config, h100).launches[0].grid.x;
            CHECK(blocks * (c.threads / c.lanes) >= wanted);
            CHECK((blocks - 1) * (c.threads / c.lanes) < wanted);
        }
    }
}
