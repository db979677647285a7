// Every variant of expert_routing on the GPU against the host: the experts of each token, their weights,
// starts and rows; ties, NaN, infinities, strides, one token and many.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kernel_templates/expert_routing/routing.h"
#include "tests/runtime/gpu_run.h"

using namespace hone;
using namespace hone::test;

namespace {

using expert_routing::RoutingProblem;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// What logits are like.
enum class Kind { usual, many_ties, few_numbers };

class RoutingCase {
  public:
    RoutingCase(const std::string& text, Kind kind, std::int64_t padding)
        : problem_(*parse_problem("expert_routing " + text)), p_(problem_), stride_(p_.experts + padding) {
        std::mt19937_64 random(static_cast<std::uint64_t>(p_.experts * 31 + p_.tokens));
        std::normal_distribution<double> normal(0.0, 2.0);
        const std::vector<Argument> arguments = problem_.family->arguments(problem_);
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            const Argument& argument = arguments[i];
            const bool is_workspace = argument.role == Role::workspace;
            HostTensor tensor(argument.dtype, is_workspace ? 0 : argument.shape[2], argument.shape[3],
                              i == expert_routing::logits ? stride_ : argument.shape[3]);
            for (std::int64_t r = 0; i == expert_routing::logits && r < p_.tokens; ++r) {
                for (std::int64_t c = 0; c < p_.experts; ++c)
                    tensor.set(r, c, logit(kind, normal(random), random));
            }
            host_.push_back(std::move(tensor));
        }
        expect();
    }

    [[nodiscard]] const Problem& problem() const { return problem_; }
    [[nodiscard]] std::string fault(const Candidate& candidate) const {
        const std::vector<HostTensor> results =
            run_on_gpu(problem_, candidate, host_, {Scalar::of(p_.tokens), Scalar::of(stride_)});
        const auto fault = [&](int pointer, std::int64_t rows, std::int64_t columns,
                               const std::vector<double>& wanted) {
            const std::string found = fault_of(results[static_cast<std::size_t>(pointer)], wanted, rows,
                                               columns, problem_.family->tolerance(problem_, pointer));
            return found.empty() ? found : std::to_string(pointer) + ": " + found + "; ";
        };
        return fault(expert_routing::routing_weights, p_.tokens, p_.top_k, weights_) +
               fault(expert_routing::starts, p_.experts + 1, 1, starts_) +
               fault(expert_routing::rows, p_.places(), 1, rows_);
    }

  private:
    static double logit(Kind kind, double drawn, std::mt19937_64& random) {
        if (kind == Kind::many_ties) return std::round(drawn);
        if (kind == Kind::usual) return drawn;
        constexpr double others[] = {infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), 0.0,
                                     -0.0};
        return random() % 4 == 0 ? drawn : others[random() % 5];
    }
    /// As the kernels see it.
    [[nodiscard]] double at(std::int64_t token, std::int64_t expert) const {
        const double logit = host_[expert_routing::logits].at(token, expert);
        return std::isnan(logit) ? -infinity : logit;
    }
    [[nodiscard]] double mass(std::int64_t token, std::int64_t expert, double largest) const {
        const double logit = at(token, expert);
        return logit == largest ? 1.0 : std::exp(logit - largest);
    }
    [[nodiscard]] std::vector<std::int64_t> chosen(std::int64_t token) const {
        std::vector<std::int64_t> order(static_cast<std::size_t>(p_.experts));
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(order, std::greater(),
                                 [&](std::int64_t expert) { return at(token, expert); });
        order.resize(static_cast<std::size_t>(p_.top_k));
        return order;
    }
    void expect() {
        std::vector<std::vector<double>> pairs(static_cast<std::size_t>(p_.experts));
        for (std::int64_t token = 0; token < p_.tokens; ++token) {
            const std::vector<std::int64_t> mine = chosen(token);
            const double largest = at(token, mine[0]);
            double sum = 0;
            for (std::int64_t e = 0; !p_.renormalize && e < p_.experts; ++e) sum += mass(token, e, largest);
            for (const std::int64_t e : mine) sum += p_.renormalize ? mass(token, e, largest) : 0.0;
            for (const std::int64_t e : mine) {
                pairs[static_cast<std::size_t>(e)].push_back(static_cast<double>(weights_.size()));
                weights_.push_back(mass(token, e, largest) / sum);
            }
        }
        for (const std::vector<double>& mine : pairs) {
            starts_.push_back(static_cast<double>(rows_.size()));
            rows_.insert(rows_.end(), mine.begin(), mine.end());
        }
        starts_.push_back(static_cast<double>(rows_.size()));
    }

    Problem problem_;
    RoutingProblem p_;
    std::int64_t stride_;
    std::vector<HostTensor> host_;
    std::vector<double> weights_;
    std::vector<double> starts_;
    std::vector<double> rows_;
};

void check_problem(const std::string& text, std::size_t each, Kind kind = Kind::usual,
                   std::int64_t padding = 0) {
    const RoutingCase routing(text, kind, padding);
    for (const Candidate& candidate : test::sample(routing.problem(), each)) {
        INFO(text << " | " << to_string(candidate));
        CHECK(routing.fault(candidate) == "");
    }
}

}  // namespace

TEST_CASE("small routings are right in every dtype, with and without renormalizing") {
    for (const char* dtype : {"fp32", "fp16", "bf16"}) {
        for (const char* renormalize : {"no", "yes"}) {
            const std::string lead = std::string("dtype=") + dtype + " renormalize=" + renormalize;
            check_problem(lead + " experts=8 top_k=2 tokens=5", 2);
            check_problem(lead + " experts=128 top_k=8 tokens=1", 2);
            check_problem(lead + " experts=33 top_k=32 tokens=3", 2);
        }
    }
}

TEST_CASE(
    "small routings with ties, NaN and infinities choose the first of equals and have no weight that is "
    "NaN") {
    for (const Kind kind : {Kind::many_ties, Kind::few_numbers}) {
        for (const char* renormalize : {"no", "yes"}) {
            const std::string lead = std::string("dtype=fp32 renormalize=") + renormalize;
            check_problem(lead + " experts=60 top_k=6 tokens=40", 2, kind);
            check_problem(lead + " experts=4 top_k=4 tokens=9", 2, kind);
        }
    }
}

TEST_CASE("routings are right for any number of experts and of experts a token") {
    for (const char* sizes :
         {"experts=1 top_k=1", "experts=2 top_k=1", "experts=31 top_k=3", "experts=32 top_k=4",
          "experts=64 top_k=6", "experts=200 top_k=5", "experts=512 top_k=10", "experts=512 top_k=32"}) {
        check_problem(std::string("dtype=bf16 renormalize=yes tokens=70 ") + sizes, 2);
    }
}

TEST_CASE("routings are right for one token and for many") {
    for (const char* tokens : {"1", "7", "64", "65", "128", "1000", "4096", "20000"}) {
        check_problem(std::string("dtype=bf16 renormalize=yes experts=128 top_k=8 tokens=") + tokens, 2);
        check_problem(std::string("dtype=fp32 experts=8 top_k=2 tokens=") + tokens, 2);
    }
}

TEST_CASE("rows with a stride are right") {
    for (const std::int64_t padding : {1, 8})
        check_problem("dtype=bf16 experts=60 top_k=4 tokens=33", 2, Kind::usual, padding);
}
