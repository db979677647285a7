#include "kernel_templates/norm/norm.h"

#include <doctest/doctest.h>

#include "kernel_templates/catalog.h"
#include "kernel_templates/kit/accesses.h"
#include "kernel_templates/norm/rank.h"
#include "kernel_templates/space.h"

using namespace hone;

namespace {

Problem problem_of(const std::string& text) { return *parse_problem(text); }
Work work_of(const Problem& problem) { return problem.family->work(problem); }

}  // namespace

TEST_CASE("a norm problem reads back as numbers, for both families") {
    const norm::NormProblem rms(problem_of("rmsnorm dtype=fp16 output=int8 residual=yes hidden=96 rows=5"));
    CHECK(rms.dtype == Dtype::fp16);
    CHECK(rms.out_dtype() == Dtype::int8);
    CHECK(rms.residual);
    CHECK_FALSE(rms.layernorm);
    CHECK_FALSE(rms.bias);
    CHECK(rms.hidden == 96);
    CHECK(rms.rows == 5);
    const norm::NormProblem layer(problem_of("layernorm dtype=fp32 bias=no hidden=33 rows=6"));
    CHECK(layer.layernorm);
    CHECK_FALSE(layer.bias);
    CHECK(layer.hidden == 33);
    CHECK(layer.rows == 6);
}

TEST_CASE("problems say unit_offset only where it is yes, so that older winners stay theirs") {
    const Problem plain = problem_of("rmsnorm dtype=bf16 unit_offset=no hidden=96 rows=5");
    CHECK(plain == problem_of("rmsnorm dtype=bf16 hidden=96 rows=5"));
    CHECK(static_text(plain) == "dtype=bf16 output=same residual=no hidden=96");
    const Problem offset = problem_of("rmsnorm dtype=bf16 unit_offset=yes hidden=96 rows=5");
    CHECK(static_text(offset) == "dtype=bf16 output=same residual=no unit_offset=yes hidden=96");
    CHECK(norm::NormProblem(offset).unit_offset);
}

TEST_CASE("winners of a norm serve the one whose weight has 1 added to it") {
    for (const std::string family : {"rmsnorm", "layernorm"}) {
        const std::string rest = " output=fp8 residual=yes hidden=96 rows=5";
        const Problem plain = problem_of(family + " dtype=bf16" + rest);
        const Problem offset = problem_of(family + " dtype=bf16 unit_offset=yes" + rest);
        CHECK(plain.family->kin(offset) == plain);
        CHECK_FALSE(plain.family->kin(plain));
    }
}

TEST_CASE("the floor counts each operand once") {
    // x and out: 2 x 3 x 4096 x 2 bytes; weight: 4096 x 2 bytes
    CHECK(work_of(problem_of("rmsnorm dtype=bf16 hidden=4096 rows=3")).bytes == 2 * 3 * 4096 * 2 + 4096 * 2);
    // x, residual, sum in bf16; out in one byte; one float a row
    CHECK(work_of(problem_of("rmsnorm dtype=bf16 output=fp8 residual=yes hidden=4096 rows=3")).bytes ==
          3 * 3 * 4096 * 2 + 3 * 4096 + 4096 * 2 + 3 * 4);
}

TEST_CASE("arguments and scalars stand where the kernels expect them") {
    const Problem problem = problem_of("layernorm dtype=bf16 output=int8 residual=yes hidden=64 rows=2");
    const std::vector<Argument> arguments = problem.family->arguments(problem);
    REQUIRE(arguments.size() == norm::pointer_count);
    CHECK(arguments[norm::x].name == "x");
    CHECK(arguments[norm::scale].elements() == 2);
    CHECK(arguments[norm::scale].dtype == Dtype::fp32);
    CHECK(arguments[norm::bias].role == Role::weight);
    CHECK(arguments[norm::sum].role == Role::output);
    const std::vector<ScalarArgument> scalars = problem.family->scalars(problem);
    REQUIRE(scalars.size() == norm::scalar_count);
    CHECK(scalars[norm::rows].tuning_value.bits == 2);
    CHECK(std::rbegin(norm::call_args)->kind == KernelArg::Kind::real);
}

TEST_CASE("accesses are as wide as hidden allows, up to sixteen bytes") {
    const auto widest = [](const std::string& text) {
        const norm::NormProblem norm(problem_of(text));
        return widest_vector(norm.hidden, norm.element_bytes());
    };
    CHECK(widest("rmsnorm dtype=bf16 hidden=4096 rows=1") == 8);
    CHECK(widest("rmsnorm dtype=fp32 hidden=4096 rows=1") == 4);
    CHECK(widest("rmsnorm dtype=bf16 hidden=4100 rows=1") == 4);
    CHECK(widest("rmsnorm dtype=bf16 hidden=4098 rows=1") == 2);
    CHECK(widest("rmsnorm dtype=bf16 hidden=4097 rows=1") == 1);
}

TEST_CASE(
    "rows too long for one block's registers fall back to a cluster, or to streaming where there are none") {
    const Problem problem = problem_of("rmsnorm dtype=fp32 hidden=65536 rows=8");
    CHECK(fallback(problem, *representative_device({9, 0, true}))->variant->name == "cluster_row");
    CHECK(fallback(problem, *representative_device({8, 0, false}))->variant->name == "streamed_row");
}

TEST_CASE("lines of x should leave level 2 first where it holds what is written, last where it does not") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    const auto hint_of_best = [&](const std::string& text) {
        const auto [candidate, predicted] = ranked_space(problem_of(text), h100).front();
        CHECK(candidate.variant->name == "group_rows");
        return candidate.config[5];
    };
    CHECK(hint_of_best("layernorm dtype=bf16 hidden=1024 rows=16384") == 3);
    CHECK(hint_of_best("rmsnorm dtype=bf16 hidden=8192 rows=16384") == 4);
    const DeviceTraits a100 = *representative_device({8, 0, false});
    for (const auto& [candidate, predicted] :
         ranked_space(problem_of("rmsnorm dtype=bf16 hidden=8192 rows=16384"), a100))
        if (candidate.variant->name == "group_rows") CHECK(candidate.config[5] < 3);
}

TEST_CASE("rows are asked for ahead of the wait where a call fills half of level 2 and launches overlap") {
    constexpr std::string_view config =
        "group_rows threads=128 lanes=128 vector=8 rows=1 early_weights=1 load_hint=0 store_hint=0 "
        "programmatic=";
    const auto allowed_on = [&](Arch arch, const std::string& rows, const char* programmatic) {
        const Problem problem = problem_of("rmsnorm dtype=bf16 hidden=4096 rows=" + rows);
        const Candidate candidate =
            parse_candidate(*problem.family, std::string(config) + programmatic).value();
        return allowed(problem, candidate, *representative_device(arch));
    };
    const Arch sm_90a{9, 0, true};
    CHECK(allowed_on(sm_90a, "4096", "2"));
    CHECK_FALSE(allowed_on(sm_90a, "512", "2"));
    CHECK(allowed_on(sm_90a, "512", "1"));
    CHECK_FALSE(allowed_on({8, 0, false}, "4096", "2"));
}

TEST_CASE("the blocks of every variant cover all rows") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    for (const std::int64_t rows : {1, 2, 3, 131, 132, 133, 1000, 16385}) {
        const Problem problem = problem_of("rmsnorm dtype=bf16 hidden=1024 rows=" + std::to_string(rows));
        for (const auto& [candidate, predicted] : ranked_space(problem, h100)) {
            const Launch launch = candidate.variant->plan(problem, candidate.config, h100).launches[0];
            if (candidate.variant->name == "group_rows") {
                const std::int64_t rows_per_block =
                    candidate.config[0] / candidate.config[1] * candidate.config[3];
                CHECK(launch.grid.x * rows_per_block >= rows);
                CHECK((launch.grid.x - 1) * rows_per_block < rows);
            } else if (candidate.variant->name == "cluster_row") {
                CHECK(launch.grid.x == rows * launch.cluster.x);
            } else if (candidate.variant->name == "streamed_row") {
                CHECK(launch.grid.x == rows);
            }
        }
    }
}

TEST_CASE("defaults tell level 2 of loads where a call does not fit it, on chips that can be told") {
    const auto hints = [](const std::string& text, Arch arch) {
        const std::optional<Candidate> candidate = fallback(problem_of(text), *representative_device(arch));
        REQUIRE(candidate);
        const std::string shown = to_string(*candidate);
        const std::size_t at = shown.find("load_hint=");
        return at == std::string::npos ? shown : shown.substr(at, shown.find(" programmatic") - at);
    };
    const Arch sm_90a{9, 0, true};
    CHECK(hints("rmsnorm dtype=bf16 hidden=4096 rows=512", sm_90a) == "load_hint=0 store_hint=0");
    CHECK(hints("layernorm dtype=bf16 hidden=256 rows=65536", sm_90a) == "load_hint=3 store_hint=0");
    CHECK(hints("rmsnorm dtype=bf16 hidden=256 rows=131072", sm_90a) == "load_hint=0 store_hint=0");
    CHECK(hints("rmsnorm dtype=bf16 hidden=1024 rows=65536", sm_90a) == "load_hint=4 store_hint=0");
    CHECK(hints("rmsnorm dtype=bf16 hidden=1024 rows=65536", {8, 0, false}) == "load_hint=0 store_hint=0");
}
