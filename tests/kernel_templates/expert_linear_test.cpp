#include "kernel_templates/expert_linear/expert_linear.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>
#include <vector>

#include "kernel_templates/catalog.h"
#include "kernel_templates/expert_linear/plain_plan.h"
#include "kernel_templates/expert_linear/tiles_rank.h"
#include "kernel_templates/expert_linear/variants.h"
#include "kernel_templates/space.h"

using namespace hone;
using namespace hone::expert_linear;

namespace {

Problem problem_of(const std::string& text) { return *parse_problem("expert_linear " + text); }

std::string refusal(const std::string& text) {
    std::string error;
    CHECK_FALSE(parse_problem("expert_linear dtype=bf16 " + text, &error));
    return error;
}

/// Rows of each expert, `places` in all, at random.
std::vector<std::int64_t> random_counts(std::int64_t places, std::int64_t experts, std::mt19937& random) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(experts), 0);
    const auto among = static_cast<std::uint32_t>(1 + random() % static_cast<std::uint32_t>(experts));
    for (std::int64_t i = 0; i < places; ++i) ++counts[random() % among];
    return counts;
}

}  // namespace

TEST_CASE("no routing needs more tiles than are launched, and some routing needs them all") {
    std::mt19937 random(1);
    for (int i = 0; i < 20000; ++i) {
        const auto places = static_cast<std::int64_t>(1 + random() % 200);
        const auto experts = static_cast<std::int64_t>(1 + random() % 40);
        const auto rows = static_cast<std::int64_t>(1 + random() % 20);
        std::int64_t tiles = 0;
        for (const std::int64_t count : random_counts(places, experts, random))
            tiles += ceil_div(count, rows);
        REQUIRE(tiles <= most_tiles(places, experts, rows));
    }
    CHECK(most_tiles<std::int64_t>(8, 128, 1) == 8);   // a row a tile
    CHECK(most_tiles<std::int64_t>(8, 128, 64) == 8);  // an expert each
    CHECK(most_tiles<std::int64_t>(64 + 7, 8, 64) == 8);
    CHECK(most_tiles<std::int64_t>(64 * 8, 1, 64) == 8);
}

TEST_CASE("experts and sizes that make no sense are refused by name") {
    CHECK(refusal("experts=4 top_k=5 in=8 out=8 tokens=1").find("top_k is 5; allowed: at most experts, 4") !=
          std::string::npos);
    CHECK(refusal("experts=512 top_k=1 in=262144 out=1048576 tokens=1").find("experts x out x in") !=
          std::string::npos);
    CHECK(refusal("experts=32 top_k=32 in=8 out=8 tokens=1000000").find("tokens x top_k") !=
          std::string::npos);
    CHECK(refusal("experts=32 top_k=16 in=8 out=1048576 tokens=1000000").find("tokens x top_k x out") !=
          std::string::npos);
    CHECK(refusal("experts=513 top_k=1 in=8 out=8 tokens=1").find("experts") != std::string::npos);
}

TEST_CASE("a gate of gpt-oss joins two products, and dense layers have none") {
    const std::string sizes = " experts=4 top_k=2 in=8 out=8 tokens=1";
    CHECK(refusal("activation=swiglu_oai" + sizes)
              .find("activation is swiglu_oai, which joins two products; allowed: with gated=yes") !=
          std::string::npos);
    CHECK(parse_problem("expert_linear dtype=bf16 activation=swiglu_oai gated=yes" + sizes));
    CHECK(parse_problem("quantized_expert_linear dtype=bf16 format=w8a8 activation=swiglu_oai gated=yes" +
                        sizes));
    CHECK_FALSE(
        parse_problem("quantized_expert_linear dtype=bf16 format=w8a8 activation=swiglu_oai" + sizes));
    for (const char* dense : {"linear dtype=bf16 activation=swiglu_oai gated=yes in=8 out=8 tokens=1",
                              "quantized_linear dtype=bf16 format=w8a8 activation=swiglu_oai gated=yes in=16 "
                              "out=16 tokens=1"}) {
        std::string error;
        CHECK_FALSE(parse_problem(dense, &error));
        CHECK(error.find("activation") != std::string::npos);
    }
}

TEST_CASE("a gate has biases of its own") {
    const auto present = [](const Problem& problem, int pointer) {
        return problem.family->arguments(problem)[static_cast<std::size_t>(pointer)].present;
    };
    const Problem gated =
        problem_of("dtype=bf16 activation=silu gated=yes bias=yes experts=4 top_k=2 in=8 out=8 tokens=3");
    CHECK(present(gated, bias));
    CHECK(present(gated, up_bias));
    const Problem plain = problem_of("dtype=bf16 bias=yes experts=4 top_k=2 in=8 out=8 tokens=3");
    CHECK(present(plain, bias));
    CHECK_FALSE(present(plain, up_bias));
    CHECK_FALSE(present(plain, rows));
}

TEST_CASE("rows of x and out are tokens where they are gathered or combined, else places") {
    const auto rows_of = [](const std::string& options, int pointer) {
        const Problem problem =
            problem_of("dtype=bf16 " + options + " experts=8 top_k=2 in=16 out=24 tokens=5");
        return problem.family->arguments(problem)[static_cast<std::size_t>(pointer)].shape[2];
    };
    CHECK(rows_of("", x) == 10);
    CHECK(rows_of("", out) == 10);
    CHECK(rows_of("gather=yes", x) == 5);
    CHECK(rows_of("gather=yes", out) == 10);
    CHECK(rows_of("combine=yes", x) == 10);
    CHECK(rows_of("combine=yes", out) == 5);
}

TEST_CASE("starts of tuning share all places out, as unevenly as where they fall at random") {
    for (const char* sizes : {"experts=128 top_k=8 tokens=4096", "experts=8 top_k=2 tokens=1",
                              "experts=7 top_k=3 tokens=100", "experts=512 top_k=32 tokens=524288"}) {
        const Problem problem = problem_of(std::string("dtype=bf16 in=8 out=8 ") + sizes);
        const ExpertProblem p(problem);
        const Argument argument = problem.family->arguments(problem)[starts];
        CHECK(argument.fill == Fill::uneven_ramp);
        // As the harness rounds them before it makes them uneven: products in float32.
        const auto start = [&](std::int64_t e) {
            return std::lrintf(static_cast<float>(argument.fill_scale) * static_cast<float>(e));
        };
        CHECK(start(0) == 0);
        CHECK(start(p.experts) == p.places());
        for (std::int64_t e = 0; e < p.experts; ++e)
            CHECK(start(e + 1) - start(e) <= ceil_div(p.places(), p.experts) + 1);
    }
}

TEST_CASE("tiles to expect are those of random routings") {
    std::mt19937 random(3);
    for (const char* sizes :
         {"experts=128 top_k=8 tokens=16", "experts=8 top_k=2 tokens=16", "experts=8 top_k=2 tokens=256",
          "experts=128 top_k=8 tokens=300", "experts=128 top_k=8 tokens=4096"}) {
        const ExpertProblem p(problem_of(std::string("dtype=bf16 in=8 out=8 ") + sizes));
        for (const std::int64_t rows : {1, 2, 8, 16, 64, 96, 128, 256}) {
            CAPTURE(sizes);
            CAPTURE(rows);
            constexpr int routings = 200;
            double tiles = 0;
            for (int i = 0; i < routings; ++i) {
                std::vector<std::int64_t> counts(static_cast<std::size_t>(p.experts), 0);
                for (std::int64_t place = 0; place < p.places(); ++place)
                    ++counts[random() % static_cast<std::uint32_t>(p.experts)];
                for (const std::int64_t count : counts) tiles += static_cast<double>(ceil_div(count, rows));
            }
            CHECK(static_cast<double>(p.tiles(rows)) == doctest::Approx(tiles / routings).epsilon(0.06));
        }
    }
}

TEST_CASE("tiles that cost models expect are those of tokens that choose experts without repeats") {
    std::mt19937 random(5);
    for (const char* sizes :
         {"experts=8 top_k=2 tokens=512", "experts=8 top_k=4 tokens=256", "experts=128 top_k=8 tokens=512"}) {
        const ExpertProblem p(problem_of(std::string("dtype=bf16 in=8 out=8 ") + sizes));
        for (const std::int64_t rows : {32, 48, 128, 144, 160}) {
            CAPTURE(sizes);
            CAPTURE(rows);
            constexpr int routings = 200;
            std::vector<int> experts(static_cast<std::size_t>(p.experts));
            std::iota(experts.begin(), experts.end(), 0);
            double tiles = 0;
            for (int i = 0; i < routings; ++i) {
                std::vector<std::int64_t> counts(experts.size(), 0);
                for (std::int64_t token = 0; token < p.tokens; ++token) {
                    std::vector<int> chosen;
                    std::ranges::sample(experts, std::back_inserter(chosen), p.top_k, random);
                    for (const int expert : chosen) ++counts[static_cast<std::size_t>(expert)];
                }
                for (const std::int64_t count : counts) tiles += static_cast<double>(ceil_div(count, rows));
            }
            // A whole number of them, in which half a tile is 6 % of 8.
            CHECK(static_cast<double>(routed_tiles(p, rows)) ==
                  doctest::Approx(tiles / routings).epsilon(p.experts == 8 ? 0.065 : 0.02));
        }
    }
}

TEST_CASE("no more experts are expected to have rows than there are, nor than have places") {
    for (const char* sizes :
         {"experts=8 top_k=8 tokens=16", "experts=4 top_k=4 tokens=64", "experts=32 top_k=32 tokens=8",
          "experts=8 top_k=7 tokens=32", "experts=8 top_k=4 tokens=32", "experts=128 top_k=8 tokens=1"}) {
        CAPTURE(sizes);
        const ExpertProblem p(problem_of(std::string("dtype=bf16 in=8 out=8 ") + sizes));
        CHECK(p.with_rows() <= p.active());
        if (p.top_k == p.experts) CHECK(p.tiles(16) == p.experts * ceil_div(p.tokens, 16));
    }
}

TEST_CASE("what is combined passes through the workspace, in one launch more") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    const Problem sorted = problem_of("dtype=bf16 experts=8 top_k=2 in=64 out=96 tokens=33");
    const Problem combined = problem_of("dtype=bf16 combine=yes experts=8 top_k=2 in=64 out=96 tokens=33");
    for (const Variant* variant : sorted.family->variants) {
        for (const Config& config : enumerate(sorted, *variant, h100)) {
            const Plan plan = variant->plan(sorted, config, h100);
            const Plan with_sum = variant->plan(combined, config, h100);
            CHECK(with_sum.launch_count == plan.launch_count + 1);
            CHECK(with_sum.workspace_bytes == plan.workspace_bytes + 33 * 2 * 96 * 2);
        }
    }
}

TEST_CASE("the floor counts the weights of experts that have rows, once") {
    const Problem one = problem_of("dtype=bf16 experts=8 top_k=2 in=4096 out=1024 tokens=1");
    const Problem all = problem_of("dtype=bf16 experts=8 top_k=2 in=4096 out=1024 tokens=64");
    const double weight = 4096.0 * 1024 * 2;
    CHECK(one.family->work(one).bytes >= 2 * weight);
    CHECK(one.family->work(one).bytes < 2.1 * weight);
    CHECK(all.family->work(all).bytes >= 8 * weight);
    CHECK(all.family->work(all).flops == 2.0 * 128 * 4096 * 1024);
}
