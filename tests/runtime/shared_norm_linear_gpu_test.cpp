// Linear layers that share a norm on the GPU: every variant against double arithmetic on the host, and two in
// a row against a linear layer, a norm and another linear layer.
#include <doctest/doctest.h>

#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernel_templates/shared_norm_linear/shared_norm_linear.h"
#include "tests/runtime/gpu_run.h"
#include "tests/runtime/shared_norm_case.h"

using namespace hone;
using namespace hone::test;

namespace {

using shared_norm_linear::SharedNormProblem;

/// Large enough to be seen.
constexpr float epsilon = 0.1F;

class SharingCase {
  public:
    /// Rows of x, weight, up, residual and out have `padding` elements behind them.
    explicit SharingCase(const std::string& text, std::int64_t padding = 0)
        : problem_(*parse_problem("shared_norm_linear " + text)), p_(problem_), padding_(padding) {
        std::mt19937_64 random(static_cast<std::uint64_t>(p_.in * 7919 + p_.out * 31 + p_.tokens));
        for (const Argument& argument : problem_.family->arguments(problem_)) {
            const bool absent = !argument.present || argument.role == Role::workspace;
            std::normal_distribution<double> normal(argument.fill_offset, argument.fill_scale);
            std::uniform_real_distribution<double> uniform(argument.fill_offset - argument.fill_scale,
                                                           argument.fill_offset + argument.fill_scale);
            const std::int64_t columns = argument.shape[3];
            HostTensor tensor(argument.dtype, absent ? 0 : argument.shape[2], columns,
                              columns + padding_of(argument));
            const bool filled = !absent && argument.role != Role::output;
            for (std::int64_t r = 0; filled && r < argument.shape[2]; ++r) {
                for (std::int64_t c = 0; c < columns; ++c)
                    tensor.set(r, c, argument.fill == Fill::normal ? normal(random) : uniform(random));
            }
            host_.push_back(std::move(tensor));
        }
    }

    [[nodiscard]] const Problem& problem() const { return problem_; }
    [[nodiscard]] std::int64_t tokens() const { return p_.tokens; }
    [[nodiscard]] HostTensor& host(int pointer) { return host_[static_cast<std::size_t>(pointer)]; }
    [[nodiscard]] const HostTensor& host(int pointer) const {
        return host_[static_cast<std::size_t>(pointer)];
    }

    [[nodiscard]] std::vector<HostTensor> run(const Candidate& candidate, int launches = 1,
                                              bool in_place = false) const {
        const auto stride = [this](std::int64_t rows, std::int64_t columns) {
            return Scalar::of(columns + (rows == 1 ? 0 : padding_));
        };
        const Scalar of_weight = stride(p_.out, p_.in);
        const Scalar of_results = stride(p_.tokens, p_.out);
        std::optional<std::pair<std::size_t, std::size_t>> same;
        if (in_place) same = {shared_norm_linear::out, shared_norm_linear::residual};
        return run_on_gpu(problem_, candidate, host_,
                          {Scalar::of(p_.tokens), stride(p_.tokens, p_.in), of_weight, of_weight, of_results,
                           of_results, Scalar::of(epsilon)},
                          same, launches);
    }

    /// What is wrong with the results, or empty.
    [[nodiscard]] std::string fault_of(const std::vector<HostTensor>& results) {
        if (!wanted_) {
            const std::vector<double> weight = numbers(shared_norm_linear::weight, p_.out);
            const std::vector<double> up = numbers(shared_norm_linear::up, p_.gated ? p_.out : 0);
            wanted_.emplace(problem_, host_, double{epsilon},
                            SharedNormOperands{numbers(shared_norm_linear::x, p_.tokens), weight, up});
        }
        return wanted_->fault_of(results);
    }

  private:
    [[nodiscard]] std::int64_t padding_of(const Argument& argument) const {
        const bool strided = argument.name == "x" || argument.name == "weight" || argument.name == "up" ||
                             argument.name == "residual" || argument.name == "out";
        return strided && argument.shape[2] > 1 ? padding_ : 0;
    }

    [[nodiscard]] std::vector<double> numbers(int pointer, std::int64_t rows) const {
        std::vector<double> values;
        for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < p_.in; ++c) values.push_back(host(pointer).at(r, c));
        }
        return values;
    }

    Problem problem_;
    SharedNormProblem p_;
    std::int64_t padding_;
    std::vector<HostTensor> host_;
    std::optional<SharedNormExpectation<SharedNormProblem>> wanted_;
};

/// `count` configs of a variant, spread over its space; compiled.
std::vector<Candidate> spread(const Problem& problem, const Variant& variant, std::size_t count) {
    const std::vector<Config> configs = enumerate(problem, variant, Bench::get().traits);
    std::vector<Candidate> chosen;
    for (std::size_t i = 0; i < configs.size(); i += 1 + configs.size() / count)
        chosen.push_back({&variant, configs[i]});
    Bench::get().compile(problem, chosen);
    return chosen;
}

void check(const std::string& text, std::size_t count, int launches = 1, std::int64_t padding = 0) {
    SharingCase sharing(text, padding);
    for (const Variant* variant : sharing.problem().family->variants) {
        if (!runs_on(*variant, Bench::get().traits)) continue;
        const std::size_t shown = variant == &shared_norm_linear::plain ? 2 : count;
        const std::vector<Candidate> chosen = spread(sharing.problem(), *variant, shown);
        const bool has_some = variant == &shared_norm_linear::plain ||
                              (variant == &shared_norm_linear::ring && sharing.tokens() <= 64);
        CHECK((!has_some || !chosen.empty()));
        for (const Candidate& candidate : chosen) {
            INFO(text << " | " << to_string(candidate));
            CHECK(sharing.fault_of(sharing.run(candidate, launches)) == "");
        }
    }
}

/// Up to `count` of each variant that writes slots with several threads.
std::vector<Candidate> writers_of_squares(const Problem& problem, std::size_t count) {
    std::vector<Candidate> all = spread(problem, shared_norm_linear::ring, count);
    for (Candidate& candidate : spread(problem, shared_norm_linear::wgmma, count))
        all.push_back(std::move(candidate));
    return all;
}

std::string tokens_text(std::int64_t tokens) { return " tokens=" + std::to_string(tokens); }

}  // namespace

TEST_CASE("products in front of a norm write sums, these times its weight, and squares") {
    for (const std::int64_t tokens : {1, 3, 8, 13, 16, 41, 64, 100}) {
        check("dtype=bf16 next_norm=yes residual=yes in=1032 out=2144" + tokens_text(tokens), 6, 5);
        check("dtype=bf16 next_norm=yes residual=yes bias=yes in=520 out=4128" + tokens_text(tokens), 3, 5);
    }
    check("dtype=bf16 next_norm=yes in=1032 out=2144 activation=gelu_tanh tokens=7", 3);
}

TEST_CASE("products behind a norm multiply sums with what squares give") {
    for (const std::int64_t tokens : {1, 2, 3, 8, 13, 16, 41, 64, 100}) {
        check("dtype=bf16 norm=yes in=1056 out=4104" + tokens_text(tokens), 6, 5);
        check("dtype=bf16 norm=yes gated=yes activation=silu in=1056 out=2056" + tokens_text(tokens), 4, 5);
        check("dtype=bf16 norm=yes bias=yes activation=relu in=544 out=2001" + tokens_text(tokens), 2, 5);
    }
}

TEST_CASE("a product between two norms does both, also where rows have strides") {
    for (const std::int64_t tokens : {2, 8, 20, 50}) {
        check("dtype=bf16 norm=yes next_norm=yes residual=yes in=1024 out=2144" + tokens_text(tokens), 4, 1,
              24);
    }
}

TEST_CASE("sums may take the residual's place, and are the same bits each time") {
    SharingCase sharing("dtype=bf16 next_norm=yes residual=yes in=1032 out=2144 tokens=8");
    for (const Candidate& candidate : spread(sharing.problem(), shared_norm_linear::plain, 2)) {
        INFO(to_string(candidate));
        CHECK(sharing.fault_of(sharing.run(candidate, 1, true)) == "");
    }
    if (!runs_on(shared_norm_linear::ring, Bench::get().traits)) return;
    for (const std::int64_t tokens : {8, 64}) {
        SharingCase many("dtype=bf16 next_norm=yes residual=yes in=1032 out=2144" + tokens_text(tokens));
        for (const Candidate& candidate : writers_of_squares(many.problem(), 4)) {
            INFO(tokens << " tokens | " << to_string(candidate));
            const std::vector<HostTensor> results = many.run(candidate, 1, true);
            CHECK(many.fault_of(results) == "");
            const std::vector<HostTensor> again = many.run(candidate, 1, true);
            for (const int output :
                 {shared_norm_linear::out, shared_norm_linear::scaled, shared_norm_linear::squares})
                CHECK(again[static_cast<std::size_t>(output)].bytes ==
                      results[static_cast<std::size_t>(output)].bytes);
        }
    }
}

TEST_CASE("squares are the same bits whatever the tiles of who wrote them") {
    if (!runs_on(shared_norm_linear::ring, Bench::get().traits)) return;
    for (const std::int64_t tokens : {8, 64}) {
        // x and weights of one column: a sum has one term, whose order is none.
        SharingCase sharing("dtype=bf16 next_norm=yes residual=yes in=1024 out=2144" + tokens_text(tokens));
        for (const int pointer : {shared_norm_linear::x, shared_norm_linear::weight}) {
            const std::int64_t rows = pointer == shared_norm_linear::x ? tokens : 2144;
            for (std::int64_t r = 0; r < rows; ++r) {
                for (std::int64_t c = 1; c < 1024; ++c) sharing.host(pointer).set(r, c, 0.0);
            }
        }
        std::vector<std::byte> first;
        for (const Candidate& candidate : writers_of_squares(sharing.problem(), 6)) {
            INFO(tokens << " tokens | " << to_string(candidate));
            const auto bytes = sharing.run(candidate)[shared_norm_linear::squares].bytes;
            if (first.empty()) first = bytes;
            CHECK(bytes == first);
        }
    }
}

TEST_CASE("two products that share a norm make what a norm between them makes") {
    constexpr std::int64_t hidden = 1024;
    for (const std::int64_t tokens : {1, 8, 16}) {
        SharingCase front("dtype=bf16 next_norm=yes residual=yes in=512 out=1024" + tokens_text(tokens));
        SharingCase behind("dtype=bf16 norm=yes in=1024 out=1536" + tokens_text(tokens));
        const std::vector<HostTensor> given = front.run(*fallback(front.problem(), Bench::get().traits));
        behind.host(shared_norm_linear::x) = given[shared_norm_linear::scaled];
        behind.host(shared_norm_linear::norm_squares) = given[shared_norm_linear::squares];
        const std::vector<HostTensor> results = behind.run(*fallback(behind.problem(), Bench::get().traits));
        std::vector<double> wanted;
        for (std::int64_t r = 0; r < tokens; ++r) {
            double squares = 0;
            for (std::int64_t k = 0; k < hidden; ++k)
                squares += std::pow(given[shared_norm_linear::out].at(r, k), 2);
            const double factor = 1 / std::sqrt(squares / hidden + double{epsilon});
            for (std::int64_t c = 0; c < 1536; ++c) {
                double sum = 0;
                for (std::int64_t k = 0; k < hidden; ++k)
                    sum += given[shared_norm_linear::out].at(r, k) * factor *
                           front.host(shared_norm_linear::norm_weight).at(0, k) *
                           behind.host(shared_norm_linear::weight).at(c, k);
                wanted.push_back(sum);
            }
        }
        // x is rounded once more than a norm's results are: linear's tolerance behind a norm.
        const Problem normed = *parse_problem("linear dtype=bf16 norm=yes in=1024 out=1536 tokens=8");
        CHECK(test::fault_of(results[shared_norm_linear::out], wanted, tokens, 1536,
                             normed.family->tolerance(normed, 0)) == "");
    }
}

// Small enough to run under a sanitizer (tests/run_gpu_tests.sh --sanitize).
TEST_CASE("small calls of products that share a norm are right") {
    check("dtype=bf16 next_norm=yes residual=yes in=520 out=2144 tokens=1", 3);
    check("dtype=bf16 next_norm=yes residual=yes in=520 out=2144 tokens=8", 4);
    check("dtype=bf16 norm=yes in=1024 out=272 tokens=1", 4);
    check("dtype=bf16 norm=yes gated=yes activation=silu in=1024 out=272 tokens=3", 4);
    check("dtype=bf16 norm=yes in=1024 out=272 tokens=5", 4);
    check("dtype=bf16 norm=yes gated=yes activation=silu in=1024 out=272 tokens=64", 4);
    check("dtype=bf16 norm=yes gated=yes activation=silu in=1024 out=272 tokens=8", 4);
    check("dtype=bf16 norm=yes next_norm=yes residual=yes in=512 out=2144 tokens=40", 4);
}
