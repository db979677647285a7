// Every variant of expert_linear on the GPU against double arithmetic on the host: balanced routings, one
// expert with everything, many with nothing, odd sizes, few columns, gathered and combined rows, gates,
// biases; and starts and rows that are wrong.
#include <doctest/doctest.h>

#include <numeric>
#include <random>

#include "kernel_templates/expert_linear/expert_linear.h"
#include "kernel_templates/expert_linear/wgmma/plan.h"
#include "kernel_templates/kit/tunables.h"
#include "tests/runtime/activation.h"
#include "tests/runtime/expert_routes.h"
#include "tests/runtime/gpu_run.h"

using namespace hone;
using namespace hone::test;

namespace {

using expert_linear::ExpertProblem;

class ExpertCase {
  public:
    /// `padding`: elements between rows of x and of out, where they have more than one.
    ExpertCase(const std::string& text, Spread spread, std::int64_t padding)
        : problem_(*parse_problem("expert_linear " + text)),
          p_(problem_),
          padding_(padding),
          random_(static_cast<std::uint64_t>(p_.in * 7919 + p_.out * 31 + p_.tokens * 5 + p_.experts)),
          routes_(spread, p_.places(), p_.experts, random_) {
        for (const Argument& argument : problem_.family->arguments(problem_)) host_.push_back(made(argument));
        if (spread != Spread::wrong) expect();
    }

    [[nodiscard]] const Problem& problem() const { return problem_; }
    [[nodiscard]] bool suits(const Candidate& candidate) const {
        const std::int64_t access = candidate.variant->access_elements(problem_, candidate.config);
        return (p_.in + padding_) % access == 0 &&
               (p_.out % access != 0 || (p_.out + padding_) % access == 0);
    }
    [[nodiscard]] std::vector<HostTensor> run(const Candidate& candidate, int launches = 1) const {
        return run_on_gpu(problem_, candidate, host_,
                          {Scalar::of(p_.tokens), Scalar::of(p_.in + padding(p_.x_rows())),
                           Scalar::of(p_.out + padding(p_.out_rows()))},
                          {}, launches);
    }
    [[nodiscard]] std::string fault_of(const std::vector<HostTensor>& results) const {
        return test::fault_of(results[expert_linear::out], wanted_, p_.out_rows(), p_.out,
                              problem_.family->tolerance(problem_, expert_linear::out));
    }
    /// Whether nothing was written behind any row of out.
    [[nodiscard]] bool gaps_untouched(const std::vector<HostTensor>& results) const {
        for (std::int64_t row = 0; row < p_.out_rows(); ++row) {
            if (!results[expert_linear::out].padding_untouched(row)) return false;
        }
        return true;
    }

  private:
    [[nodiscard]] std::int64_t padding(std::int64_t rows) const { return rows == 1 ? 0 : padding_; }

    HostTensor made(const Argument& argument) {
        const bool absent = !argument.present || argument.role == Role::workspace;
        const std::int64_t rows = absent ? 0 : argument.shape[0] * argument.shape[1] * argument.shape[2];
        const std::int64_t columns = argument.shape[3];
        const bool padded = argument.name == "x" || argument.name == "out";
        HostTensor tensor(argument.dtype, rows, columns, columns + (padded ? padding(rows) : 0));
        if (absent || argument.role == Role::output) return tensor;
        const std::vector<std::int64_t>* const indices = argument.name == "starts" ? &routes_.starts
                                                         : argument.name == "rows" ? &routes_.rows
                                                                                   : nullptr;
        std::normal_distribution<double> normal(argument.fill_offset, argument.fill_scale);
        for (std::int64_t r = 0; r < rows; ++r) {
            if (indices != nullptr) {
                tensor.set_index(r, (*indices)[static_cast<std::size_t>(r)]);
                continue;
            }
            for (std::int64_t c = 0; c < columns; ++c) tensor.set(r, c, normal(random_));
        }
        return tensor;
    }

    [[nodiscard]] double number(int pointer, std::int64_t row, std::int64_t column) const {
        return host_[static_cast<std::size_t>(pointer)].at(row, column);
    }
    [[nodiscard]] std::vector<double> matrix(int pointer, std::int64_t rows) const {
        std::vector<double> values;
        for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < p_.in; ++c) values.push_back(number(pointer, r, c));
        }
        return values;
    }
    [[nodiscard]] double dot(const std::vector<double>& x, std::int64_t row,
                             const std::vector<double>& weight, std::int64_t weight_row) const {
        return std::inner_product(x.begin() + row * p_.in, x.begin() + (row + 1) * p_.in,
                                  weight.begin() + weight_row * p_.in, 0.0);
    }
    void expect() {
        const std::vector<double> x = matrix(expert_linear::x, p_.x_rows());
        const std::vector<double> weight = matrix(expert_linear::weight, p_.experts * p_.out);
        const std::vector<double> up = matrix(expert_linear::up, p_.gated ? p_.experts * p_.out : 0);
        wanted_.assign(static_cast<std::size_t>(p_.out_rows() * p_.out), 0.0);
        for (std::int64_t place = 0; place < p_.places(); ++place) {
            const std::int64_t pair = routes_.rows[static_cast<std::size_t>(place)];
            const std::int64_t expert = routes_.experts[static_cast<std::size_t>(pair)];
            for (std::int64_t c = 0; c < p_.out; ++c) {
                const std::int64_t row = p_.gather ? pair / p_.top_k : place;
                double value = dot(x, row, weight, expert * p_.out + c);
                if (p_.bias) value += number(expert_linear::bias, expert, c);
                value = activate(p_.activation, value);
                double second = p_.gated ? dot(x, row, up, expert * p_.out + c) : 1.0;
                if (p_.gated_bias()) second += number(expert_linear::up_bias, expert, c);
                add(place, pair, c, value * second);
            }
        }
    }
    void add(std::int64_t place, std::int64_t pair, std::int64_t column, double value) {
        if (!p_.combine) {
            wanted_[static_cast<std::size_t>(place * p_.out + column)] = value;
            return;
        }
        const double share = number(expert_linear::routing_weights, pair / p_.top_k, pair % p_.top_k);
        wanted_[static_cast<std::size_t>(pair / p_.top_k * p_.out + column)] += share * value;
    }

    Problem problem_;
    ExpertProblem p_;
    std::int64_t padding_;
    std::mt19937_64 random_;
    ExpertRoutes routes_;
    std::vector<HostTensor> host_;
    std::vector<double> wanted_;
};

void check_problem(const std::string& text, std::size_t each, Spread spread = Spread::random,
                   std::int64_t padding = 0) {
    const ExpertCase experts(text, spread, padding);
    for (const Candidate& candidate : sample(experts.problem(), each)) {
        if (!experts.suits(candidate)) continue;
        INFO(text << " | " << to_string(candidate));
        CHECK(experts.fault_of(experts.run(candidate)) == "");
    }
}

constexpr const char* options[] = {"",
                                   "gather=yes ",
                                   "combine=yes ",
                                   "bias=yes activation=relu ",
                                   "gated=yes activation=silu gather=yes ",
                                   "gated=yes activation=gelu_tanh bias=yes ",
                                   "gated=yes activation=gelu_erf bias=yes gather=yes combine=yes "};

}  // namespace

TEST_CASE("small layers of experts are right in every dtype with every option") {
    for (const char* dtype : {"fp32", "fp16", "bf16"}) {
        for (const char* option : options) {
            const std::string lead = std::string("dtype=") + dtype + " " + option;
            check_problem(lead + "experts=5 top_k=2 in=64 out=48 tokens=7", 2);
            check_problem(lead + "experts=5 top_k=2 in=64 out=48 tokens=1", 2);
        }
    }
}

TEST_CASE("small layers of odd sizes are right") {
    for (const char* option : options) {
        const std::string lead = std::string("dtype=bf16 ") + option;
        check_problem(lead + "experts=3 top_k=1 in=33 out=77 tokens=9", 2);
        check_problem(lead + "experts=4 top_k=3 in=72 out=1 tokens=5", 2);
        check_problem(lead + "experts=4 top_k=4 in=1 out=24 tokens=5", 2);
        check_problem(lead + "experts=2 top_k=1 in=136 out=36 tokens=40", 2);
    }
}

TEST_CASE("small layers whose starts and rows are wrong touch nothing outside and write behind no row") {
    for (const char* option : options) {
        for (const char* sizes :
             {"experts=6 top_k=2 in=64 out=64 tokens=9", "experts=70 top_k=8 in=64 out=64 tokens=40"}) {
            const ExpertCase experts(std::string("dtype=bf16 ") + option + sizes, Spread::wrong, 8);
            for (const Candidate& candidate : sample(experts.problem(), 3)) {
                if (!experts.suits(candidate)) continue;
                INFO(option << sizes << " | " << to_string(candidate));
                CHECK(experts.gaps_untouched(experts.run(candidate)));
            }
        }
    }
}

TEST_CASE("one expert may have everything, and many nothing") {
    for (const Spread spread : {Spread::one_expert, Spread::last_half}) {
        for (const char* option : options) {
            const std::string lead = std::string("dtype=bf16 ") + option;
            check_problem(lead + "experts=8 top_k=2 in=256 out=320 tokens=3", 3, spread);
            check_problem(lead + "experts=8 top_k=2 in=256 out=320 tokens=150", 3, spread);
            check_problem(lead + "experts=128 top_k=8 in=128 out=192 tokens=33", 3, spread);
        }
    }
}

// More tiles than multiprocessors, and a last round that leaves most of these idle; launches follow one
// another, so what one leaves in the workspace must not disturb the next.
TEST_CASE("tiles of a last round are right that all blocks share") {
    for (const char* option : {"combine=yes ", "gated=yes activation=silu gather=yes bias=yes "}) {
        const ExpertCase experts(
            std::string("dtype=bf16 ") + option + "experts=8 top_k=2 in=1024 out=1288 tokens=700",
            Spread::random, 0);
        const Variant* const wgmma = find_variant(*experts.problem().family, "wgmma");
        if (!runs_on(*wgmma, Bench::get().traits)) return;
        std::vector<Config> configs = enumerate(experts.problem(), *wgmma, Bench::get().traits);
        std::erase_if(configs, [](const Config& config) {
            return hone::values_of<expert_linear::WgmmaConfig>(config).tail_split == 0;
        });
        CHECK(!configs.empty());
        for (std::size_t i = 0; i < configs.size(); i += 1 + configs.size() / 4) {
            INFO(option << to_string(Candidate{wgmma, configs[i]}));
            CHECK(experts.fault_of(experts.run({wgmma, configs[i]}, 3)) == "");
        }
    }
}

TEST_CASE("layers are right for any number of experts a token") {
    for (const char* top_k : {"1", "2", "3", "4", "5", "6", "7", "8", "32"}) {
        for (const char* option : {"gather=yes ", "combine=yes "}) {
            check_problem(
                std::string("dtype=bf16 ") + option + "experts=40 in=128 out=96 tokens=21 top_k=" + top_k, 2);
        }
    }
}

TEST_CASE("layers are right for one token and for many") {
    for (const char* tokens : {"1", "2", "4", "8", "16", "31", "64", "130", "500"}) {
        const std::string sizes = std::string("experts=8 top_k=2 in=512 out=384 tokens=") + tokens;
        check_problem("dtype=bf16 gated=yes activation=silu gather=yes " + sizes, 4);
        check_problem("dtype=fp16 combine=yes " + sizes, 4);
    }
    check_problem(
        "dtype=bf16 gated=yes activation=silu gather=yes experts=512 top_k=10 in=256 out=128 tokens=70", 4);
}

TEST_CASE("rows with a stride are right, and what stands between the rows is not touched") {
    for (const std::int64_t padding : {8, 64}) {
        for (const char* option : options)
            check_problem(std::string("dtype=bf16 ") + option + "experts=6 top_k=2 in=128 out=160 tokens=50",
                          3, Spread::random, padding);
    }
}
