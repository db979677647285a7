// Every variant of linear on the GPU against double arithmetic on the host: odd token counts and sizes, few
// columns, strides, bias, activations, residual (also in place), gated weights, a norm in front.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernel_templates/linear/linear.h"
#include "kernel_templates/linear/variants.h"
#include "tests/runtime/activation.h"
#include "tests/runtime/gpu_run.h"

using namespace hone;
using namespace hone::test;

namespace {

using linear::LinearProblem;

/// Large enough to be seen.
constexpr float epsilon = 0.1F;

/// Elements between rows of each matrix.
struct Padding {
    std::int64_t columns_of_in = 0;   ///< x, weight, up
    std::int64_t columns_of_out = 0;  ///< residual, out
};

class LinearCase {
  public:
    LinearCase(const std::string& text, Padding padding)
        : problem_(*parse_problem("linear " + text)), p_(problem_), padding_(padding) {
        std::mt19937_64 random(static_cast<std::uint64_t>(p_.in * 7919 + p_.out * 31 + p_.tokens));
        for (const Argument& argument : problem_.family->arguments(problem_)) {
            const bool absent = !argument.present || argument.role == Role::workspace;
            std::normal_distribution<double> normal(argument.fill_offset, argument.fill_scale);
            const std::int64_t columns = argument.shape[3];
            HostTensor tensor(argument.dtype, absent ? 0 : argument.shape[2], columns,
                              columns + (argument.shape[2] == 1 ? 0 : padding_of(argument.name)));
            const bool filled = !absent && argument.role != Role::output;
            for (std::int64_t r = 0; filled && r < argument.shape[2]; ++r) {
                for (std::int64_t c = 0; c < columns; ++c) tensor.set(r, c, normal(random));
            }
            host_.push_back(std::move(tensor));
        }
        expect();
    }

    [[nodiscard]] const Problem& problem() const { return problem_; }
    [[nodiscard]] bool suits(const Candidate& candidate) const {
        const std::int64_t access = candidate.variant->access_elements(problem_, candidate.config);
        const std::string_view name = candidate.variant->name;
        const bool stores_wide = name.starts_with("wgmma") || name == "copied" || name == "mma_tiles";
        // Rows whose length is no multiple of an access begin anywhere.
        const auto suits = [access](std::int64_t columns, std::int64_t padding) {
            return columns % access != 0 || padding % access == 0;
        };
        return suits(p_.in, padding_.columns_of_in) &&
               (!stores_wide || suits(p_.out, padding_.columns_of_out));
    }

    using InPlace = std::optional<std::pair<std::size_t, std::size_t>>;

    [[nodiscard]] std::vector<HostTensor> run(const Candidate& candidate, InPlace in_place = {},
                                              int launches = 1) const {
        const auto stride = [](std::int64_t rows, std::int64_t columns, std::int64_t padding) {
            return Scalar::of(columns + (rows == 1 ? 0 : padding));
        };
        const std::int64_t of_in = padding_.columns_of_in;
        const std::int64_t of_out = padding_.columns_of_out;
        const Scalar weight_stride = stride(p_.out, p_.in, of_in);
        const Scalar out_stride = stride(p_.tokens, p_.out, of_out);
        return run_on_gpu(problem_, candidate, host_,
                          {Scalar::of(p_.tokens), stride(p_.tokens, p_.in, of_in), weight_stride,
                           weight_stride, out_stride, out_stride, Scalar::of(epsilon)},
                          in_place, launches);
    }
    [[nodiscard]] std::vector<HostTensor> run_in_place(const Candidate& candidate) const {
        return run(candidate, InPlace({linear::out, linear::residual}));
    }

    /// What is wrong with the result, or empty.
    [[nodiscard]] std::string fault_of(const std::vector<HostTensor>& results) const {
        return test::fault_of(results[linear::out], out_, p_.tokens, p_.out,
                              problem_.family->tolerance(problem_, linear::out));
    }

  private:
    [[nodiscard]] std::int64_t padding_of(std::string_view name) const {
        if (name == "residual" || name == "out") return padding_.columns_of_out;
        return name == "bias" || name == "norm_weight" || name == "workspace" ? 0 : padding_.columns_of_in;
    }

    [[nodiscard]] std::vector<double> numbers(int pointer, std::int64_t rows) const {
        std::vector<double> values;
        for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < p_.in; ++c)
                values.push_back(host_[static_cast<std::size_t>(pointer)].at(r, c));
        }
        return values;
    }
    [[nodiscard]] double product(const std::vector<double>& x, std::int64_t token,
                                 const std::vector<double>& weight, std::int64_t row) const {
        return dot(x.data() + token * p_.in, weight.data() + row * p_.in, p_.in);
    }
    void normalize(std::vector<double>& x) const {
        for (std::int64_t r = 0; r < p_.tokens; ++r) {
            double* row = x.data() + r * p_.in;
            double squares = 0;
            for (std::int64_t c = 0; c < p_.in; ++c) squares += row[c] * row[c];
            const double factor = 1 / std::sqrt(squares / static_cast<double>(p_.in) + double{epsilon});
            for (std::int64_t c = 0; c < p_.in; ++c) row[c] *= factor * host_[linear::norm_weight].at(0, c);
        }
    }
    void expect() {
        std::vector<double> x = numbers(linear::x, p_.tokens);
        if (p_.norm) normalize(x);
        const std::vector<double> weight = numbers(linear::weight, p_.out);
        const std::vector<double> up = numbers(linear::up, p_.gated ? p_.out : 0);
        for (std::int64_t r = 0; r < p_.tokens; ++r) {
            for (std::int64_t c = 0; c < p_.out; ++c) {
                double value = product(x, r, weight, c);
                if (p_.bias) value += host_[linear::bias].at(0, c);
                value = activate(p_.activation, value);
                if (p_.gated) value *= product(x, r, up, c);
                if (p_.residual) value += host_[linear::residual].at(r, c);
                out_.push_back(value);
            }
        }
    }

    Problem problem_;
    LinearProblem p_;
    Padding padding_;
    std::vector<HostTensor> host_;
    std::vector<double> out_;
};

void check_problem(const std::string& text, std::size_t each, Padding padding = {}) {
    const LinearCase linear_case(text, padding);
    for (const Candidate& candidate : sample_of(linear_case, each)) {
        INFO(text << " | " << to_string(candidate));
        CHECK(linear_case.fault_of(linear_case.run(candidate)) == "");
    }
}

/// Configs with such values of a tunable alone: others show nothing of what it does, and take their time to
/// compile.
void check_with(const LinearCase& linear_case, TunableRange wanted, std::size_t count) {
    for (const Candidate& candidate : sample_with(linear_case.problem(), wanted, count)) {
        INFO(to_string(linear_case.problem()) << " | " << to_string(candidate));
        CHECK(linear_case.fault_of(linear_case.run(candidate)) == "");
    }
}
void check_with(const std::string& text, TunableRange wanted, std::size_t count) {
    check_with(LinearCase(text, {}), wanted, count);
}

/// `count` configs of variant ring, in calls back to back.
void check_ring(const std::string& text, std::size_t count, int launches = 1, Padding padding = {}) {
    const LinearCase linear_case(text, padding);
    if (!runs_on(linear::ring, Bench::get().traits)) return;
    for (const Candidate& candidate : sample_variant(linear_case.problem(), linear::ring, count)) {
        INFO(text << " | " << to_string(candidate));
        CHECK(linear_case.fault_of(linear_case.run(candidate, {}, launches)) == "");
    }
}

std::string tokens_text(std::int64_t tokens) { return " tokens=" + std::to_string(tokens); }

}  // namespace

TEST_CASE("linear is right for every number of tokens, in every dtype") {
    for (const std::int64_t tokens : {1, 3, 17, 77, 128, 333}) {
        check_problem("dtype=bf16 in=520 out=328" + tokens_text(tokens), 2);
        check_problem("dtype=fp16 in=1032 out=136" + tokens_text(tokens), 1);
        check_problem("dtype=fp32 in=260 out=132" + tokens_text(tokens), 2);
    }
}

TEST_CASE("linear is right at sizes that no tile divides, and at odd ones") {
    for (const std::int64_t tokens : {1, 17, 128}) {
        for (const char* sizes : {"in=8 out=8", "in=72 out=16", "in=64 out=1000", "in=33 out=7",
                                  "in=129 out=130", "in=256 out=65"})
            check_problem(std::string("dtype=bf16 ") + sizes + tokens_text(tokens), 1);
    }
    for (const char* sizes : {"in=4 out=4", "in=36 out=12", "in=33 out=8", "in=100 out=1004"}) {
        for (const std::int64_t tokens : {9, 70, 300})
            check_problem(std::string("dtype=fp32 ") + sizes + tokens_text(tokens), 1);
    }
    for (const char* sizes : {"in=1 out=1", "in=130 out=33"})
        check_problem(std::string("dtype=fp32 ") + sizes + " tokens=19", 2);
}

TEST_CASE("small linear whose rows begin anywhere is right, with bias, residual, gate and norm") {
    for (const std::int64_t tokens : {1, 5, 40, 200}) {
        for (const char* rest :
             {"dtype=bf16 bias=yes residual=yes activation=gelu_erf in=264 out=131",
              "dtype=fp16 gated=yes activation=silu in=264 out=133", "dtype=bf16 norm=yes in=333 out=65",
              "dtype=fp16 norm=yes residual=yes in=334 out=50",
              "dtype=bf16 gated=yes activation=silu in=396 out=77",
              "dtype=fp32 bias=yes residual=yes in=260 out=131", "dtype=fp32 norm=yes in=261 out=30"})
            check_problem(rest + tokens_text(tokens), 2);
    }
    check_problem("dtype=bf16 residual=yes in=264 out=131 tokens=150", 2,
                  {.columns_of_in = 8, .columns_of_out = 2});
    check_problem("dtype=fp32 residual=yes in=260 out=131 tokens=150", 2,
                  {.columns_of_in = 4, .columns_of_out = 2});
}

TEST_CASE("linear is right with every activation, with bias and residual") {
    std::size_t turn = 0;
    for (const char* activation : {"none", "gelu_tanh", "gelu_erf", "silu", "relu"}) {
        const std::string text = std::string("activation=") + activation;
        check_problem("dtype=bf16 bias=yes in=256 out=272 tokens=4 " + text, 1);
        check_problem("dtype=fp16 bias=yes residual=yes in=192 out=264 tokens=200 " + text, 1);
        check_problem((++turn % 2 == 0 ? "dtype=fp32 residual=yes in=100 out=60 tokens=19 "
                                       : "dtype=fp32 bias=yes residual=yes in=96 out=260 tokens=150 ") +
                          text,
                      1);
    }
}

TEST_CASE("gated linear is right with every activation and number of tokens") {
    std::size_t turn = 0;
    for (const char* activation : {"gelu_tanh", "gelu_erf", "silu", "relu"}) {
        const std::string gated = std::string("gated=yes activation=") + activation;
        check_problem("dtype=fp16 in=264 out=144 " + gated + tokens_text(65), 1);
        check_problem(
            (++turn % 2 == 0 ? "dtype=fp32 in=50 out=30 tokens=9 " : "dtype=fp32 in=100 out=72 tokens=140 ") +
                gated,
            1);
    }
    for (const std::int64_t tokens : {12, 60, 300})
        check_problem("dtype=fp32 gated=yes activation=silu in=520 out=200" + tokens_text(tokens), 2);
    for (const std::int64_t tokens : {1, 4, 17, 64, 128, 300})
        check_problem("dtype=bf16 gated=yes activation=silu in=520 out=200" + tokens_text(tokens), 2);
}

TEST_CASE("linear is right where sums are split over clusters") {
    const TunableRange split{"cluster_k", 2, 8};
    for (const std::int64_t tokens : {5, 16, 64, 256})
        check_with("dtype=bf16 in=4096 out=64" + tokens_text(tokens), split, 3);
    check_with("dtype=fp16 in=3000 out=40 bias=yes residual=yes activation=relu tokens=100", split, 4);
    check_with("dtype=bf16 gated=yes activation=silu in=4096 out=64 tokens=40", split, 4);
    check_with("dtype=fp32 in=3000 out=40 bias=yes residual=yes activation=relu tokens=100", split, 4);
    check_with("dtype=fp32 gated=yes activation=silu in=4096 out=64 tokens=40", split, 4);
}

namespace {

/// Calls back to back are right, and leave the same bits as one alone.
void check_back_to_back(const char* text, const std::vector<TunableRange>& wanted, std::size_t count) {
    const LinearCase linear_case(text, {});
    const std::vector<Candidate> chosen = sample_with(linear_case.problem(), wanted, count);
    CHECK(chosen.empty() != runs_on(linear::wgmma, Bench::get().traits));
    for (const Candidate& candidate : chosen) {
        INFO(text << " | " << to_string(candidate));
        const std::vector<HostTensor> results = linear_case.run(candidate, {}, 3);
        CHECK(linear_case.fault_of(results) == "");
        CHECK(linear_case.run(candidate)[linear::out].bytes == results[linear::out].bytes);
    }
}

}  // namespace

TEST_CASE("sums that two blocks join early are right, in calls back to back, and the same bits each time") {
    const std::vector<TunableRange> joined{{"cluster_k", 2, 2}, {"staged", 1, 1}};
    for (const char* text :
         {"dtype=bf16 in=3016 out=1032 tokens=333", "dtype=bf16 in=1800 out=2056 residual=yes tokens=200",
          "dtype=fp16 in=2056 out=520 bias=yes residual=yes activation=gelu_tanh "
          "tokens=512"})
        check_back_to_back(text, joined, 5);
}

TEST_CASE(
    "small sums that blocks of a cluster send each other are right, back to back, the same bits each time") {
    const std::vector<TunableRange> sent{{"cluster_k", 2, 8}, {"staged", 2, 2}};
    const std::vector<TunableRange> in_pairs{{"tail_split", 2, 2}};
    check_back_to_back("dtype=bf16 in=3016 out=264 tokens=70", sent, 8);
    check_back_to_back("dtype=fp16 in=2056 out=136 bias=yes residual=yes activation=gelu_tanh tokens=200",
                       sent, 8);
    check_back_to_back("dtype=bf16 gated=yes activation=silu in=2048 out=264 tokens=40", sent, 8);
    check_back_to_back("dtype=bf16 in=2048 out=8 tokens=64", sent, 8);
    check_back_to_back("dtype=bf16 in=1032 out=2056 tokens=300", in_pairs, 8);
    check_back_to_back("dtype=fp16 in=584 out=4104 bias=yes residual=yes activation=relu tokens=140",
                       in_pairs, 8);
    check_back_to_back("dtype=bf16 gated=yes activation=silu in=520 out=2056 tokens=300", in_pairs, 8);
}

TEST_CASE("linear is right where the last tiles are split, and gives the same bits each time") {
    for (const char* text : {"dtype=bf16 in=4096 out=1160 tokens=16",
                             "dtype=fp16 in=2056 out=2568 bias=yes residual=yes activation=relu tokens=200",
                             "dtype=bf16 gated=yes activation=silu in=1032 out=5000 tokens=40"}) {
        const LinearCase linear_case(text, {});
        for (const Candidate& candidate : sample_with(linear_case.problem(), {"tail_split", 1, 1}, 4)) {
            INFO(text << " | " << to_string(candidate));
            const std::vector<HostTensor> results = linear_case.run(candidate);
            CHECK(linear_case.fault_of(results) == "");
            CHECK(linear_case.run(candidate)[linear::out].bytes == results[linear::out].bytes);
        }
    }
}

TEST_CASE(
    "linear is right where neighbours take tiles side by side, where few results are staged, and in turns") {
    for (const char* text :
         {"dtype=bf16 in=1032 out=2056 tokens=300",
          "dtype=fp16 in=520 out=20008 bias=yes residual=yes activation=gelu_tanh tokens=333",
          "dtype=bf16 gated=yes activation=silu in=1032 out=7000 tokens=300"}) {
        const LinearCase linear_case(text, {});
        check_with(linear_case, {"neighbours", 2, 2}, 4);
        check_with(linear_case, {"staged", 2, 2}, 4);
        check_with(linear_case, {"staged", 3, 3}, 4);
    }
}

TEST_CASE("linear is right in tiles of 192 rows, and where weights are the left operand of many tokens") {
    for (const TunableRange wanted : {TunableRange{"tile_m", 192, 192}, TunableRange{"swapped", 1, 1}}) {
        check_with("dtype=bf16 in=520 out=2056 tokens=777", wanted, 4);
        check_with("dtype=fp16 in=264 out=1544 bias=yes residual=yes activation=gelu_tanh tokens=1100",
                   wanted, 4);
    }
    check_with("dtype=bf16 in=264 out=200 tokens=150", {"tile_m", 192, 192}, 4);
    check_with("dtype=bf16 gated=yes activation=silu in=264 out=1544 tokens=1100", {"tile_m", 192, 192}, 4);
}

TEST_CASE("linear with many tiles a block is right") {
    check_problem("dtype=bf16 in=64 out=2048 tokens=2000", 2);
    check_problem("dtype=fp16 in=72 out=2056 bias=yes residual=yes activation=gelu_tanh tokens=1500", 2);
    check_problem("dtype=bf16 gated=yes activation=silu in=128 out=1544 tokens=1100", 2);
    check_problem("dtype=fp32 in=132 out=2052 bias=yes residual=yes activation=gelu_tanh tokens=1500", 2);
    check_problem("dtype=fp32 gated=yes activation=silu in=128 out=1540 tokens=1100", 2);
}

TEST_CASE("linear with strides is right, and what stands between the rows is not touched") {
    for (const std::int64_t tokens : {3, 17, 150}) {
        const std::string text = "bias=yes residual=yes activation=silu in=256 out=200" + tokens_text(tokens);
        check_problem("dtype=bf16 " + text, 2, {.columns_of_in = 8, .columns_of_out = 64});
        check_problem("dtype=fp16 gated=yes activation=relu in=136 out=72" + tokens_text(tokens), 2,
                      {.columns_of_in = 64, .columns_of_out = 8});
    }
    check_problem("dtype=fp32 bias=yes residual=yes in=256 out=200 tokens=150", 2,
                  {.columns_of_in = 4, .columns_of_out = 12});
    check_problem("dtype=fp32 bias=yes residual=yes in=256 out=200 tokens=70", 2,
                  {.columns_of_in = 4, .columns_of_out = 1});
    check_problem("dtype=bf16 residual=yes in=33 out=17 tokens=70", 2,
                  {.columns_of_in = 1, .columns_of_out = 3});
}

TEST_CASE("linear may write over its residual") {
    for (const std::int64_t tokens : {1, 5, 30, 200}) {
        const LinearCase linear_case("dtype=bf16 residual=yes in=264 out=136" + tokens_text(tokens), {});
        for (const Candidate& candidate : sample(linear_case.problem(), 2)) {
            INFO(tokens << " tokens | " << to_string(candidate));
            CHECK(linear_case.fault_of(linear_case.run_in_place(candidate)) == "");
        }
    }
}

TEST_CASE("linear behind a norm is right, folded and with a launch of its own") {
    for (const std::int64_t tokens : {1, 7, 30, 333}) {
        check_problem("dtype=bf16 norm=yes in=520 out=328" + tokens_text(tokens), 1);
        check_problem("dtype=bf16 norm=yes gated=yes activation=silu in=1032 out=136" + tokens_text(tokens),
                      1);
        check_problem("dtype=fp16 norm=yes residual=yes in=264 out=200" + tokens_text(tokens), 1);
    }
    for (const std::int64_t tokens : {2, 16, 100})
        check_problem("dtype=fp32 norm=yes bias=yes in=260 out=36" + tokens_text(tokens), 1);
    for (const char* sizes : {"in=8 out=8", "in=33 out=7", "in=2049 out=24", "in=18944 out=16"})
        check_problem(std::string("dtype=bf16 norm=yes ") + sizes + " tokens=5", 1);
    check_problem("dtype=bf16 norm=yes in=4096 out=64 tokens=100", 3);  // split sums share the workspace
}

TEST_CASE("a norm of rows with a stride is right") {
    for (const std::int64_t tokens : {3, 17, 150}) {
        check_problem("dtype=bf16 norm=yes residual=yes in=256 out=200" + tokens_text(tokens), 2,
                      {.columns_of_in = 8, .columns_of_out = 64});
    }
    check_problem("dtype=fp32 norm=yes in=33 out=17 tokens=70", 2, {.columns_of_in = 1, .columns_of_out = 3});
}

TEST_CASE("two runs of linear give the same bits") {
    for (const char* text :
         {"dtype=bf16 in=4096 out=192 tokens=48", "dtype=bf16 norm=yes in=4096 out=192 tokens=8"}) {
        const LinearCase linear_case(text, {});
        for (const Candidate& candidate : sample(linear_case.problem(), 3)) {
            INFO(text << " | " << to_string(candidate));
            CHECK(linear_case.run(candidate)[linear::out].bytes ==
                  linear_case.run(candidate)[linear::out].bytes);
        }
    }
}

TEST_CASE("ring is right for every number of tokens, in calls back to back") {
    for (const std::int64_t tokens : {1, 2, 3, 7, 8, 13, 16, 20, 32, 41, 64}) {
        const std::string number = tokens_text(tokens);
        SUBCASE(number.c_str()) {
            const std::string sizes = " in=1032 out=4104" + number;
            check_ring("dtype=bf16 residual=yes" + sizes, 4, 5);
            check_ring("dtype=fp16 bias=yes activation=gelu_tanh" + sizes, 2, 5);
            check_ring("dtype=bf16 gated=yes activation=silu" + sizes, 4, 5);
            check_ring("dtype=bf16 norm=yes in=520 out=2001" + number, 2, 5);
        }
    }
}

TEST_CASE("ring is right where x is long, blocks take many tiles and rows have strides") {
    const Padding padding{.columns_of_in = 24, .columns_of_out = 5};
    check_ring("dtype=bf16 in=14336 out=1040 tokens=1", 5, 20);
    check_ring("dtype=bf16 in=14344 out=1040 tokens=16", 5, 5);
    check_ring("dtype=fp16 in=200 out=28689 tokens=9", 5, 5);
    check_ring("dtype=bf16 gated=yes activation=silu in=400 out=17003 tokens=5", 5, 5);
    check_ring("dtype=fp16 gated=yes activation=relu in=352 out=2064 tokens=3", 5, 1, padding);
    check_ring("dtype=bf16 bias=yes residual=yes activation=gelu_erf in=352 out=2064 tokens=12", 5, 1,
               padding);
    check_ring("dtype=bf16 norm=yes residual=yes in=384 out=2063 tokens=60", 5, 1, padding);
}

TEST_CASE("a norm is part of ring's products, in calls back to back") {
    for (const std::int64_t tokens : {1, 2, 5, 8, 13, 16, 40}) {
        const std::string number = tokens_text(tokens);
        check_ring("dtype=bf16 norm=yes in=1032 out=4104" + number, 4, 5);
        check_ring("dtype=bf16 norm=yes gated=yes activation=silu in=2048 out=2056" + number, 2, 5);
    }
    check_ring("dtype=bf16 norm=yes residual=yes in=4096 out=6144 tokens=8", 6, 5, {.columns_of_in = 8});
    check_ring("dtype=fp16 norm=yes in=1032 out=4104 tokens=8", 2, 5);
}

// Small enough to run under a sanitizer (tests/run_gpu_tests.py --sanitize).
TEST_CASE("small calls of ring are right") {
    check_ring("dtype=bf16 norm=yes in=1032 out=272 tokens=1", 4);
    check_ring("dtype=bf16 norm=yes gated=yes activation=silu in=1024 out=272 tokens=8", 4);
    check_ring("dtype=bf16 residual=yes in=1032 out=272 tokens=1", 6);
    check_ring("dtype=fp16 bias=yes in=1032 out=271 tokens=5", 4);
    check_ring("dtype=bf16 gated=yes activation=silu in=1024 out=272 tokens=16", 4);
    check_ring("dtype=bf16 in=2056 out=520 tokens=40", 9);
}
