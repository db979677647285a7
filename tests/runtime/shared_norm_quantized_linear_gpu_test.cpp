// Quantized linear layers that share a norm on the GPU: every variant against double arithmetic on the host,
// with the tensors of a call of quantized_linear.
#include <doctest/doctest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kernel_templates/shared_norm_quantized_linear/shared_norm_quantized_linear.h"
#include "tests/runtime/quantized_linear_case.h"
#include "tests/runtime/shared_norm_case.h"

using namespace hone;
using namespace hone::test;

namespace {

using shared_norm_quantized_linear::SharedNormQuantizedProblem;

class SharingCase {
  public:
    /// `norms`: "norm=yes", "next_norm=yes" or both.
    SharingCase(const std::string& norms, const std::string& text)
        : problem_(*parse_problem("shared_norm_quantized_linear " + norms + " " + text)),
          p_(problem_),
          product_(text),
          host_(product_.tensors()) {
        std::mt19937_64 random(static_cast<std::uint64_t>(p_.in * 7919 + p_.out * 31 + p_.tokens));
        const std::vector<Argument> arguments = problem_.family->arguments(problem_);
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            const Argument& argument = arguments[i];
            const bool is_ours = i == shared_norm_quantized_linear::norm_weight || i >= host_.size();
            if (!is_ours) continue;
            HostTensor tensor(argument.dtype, argument.present ? argument.shape[2] : 0, argument.shape[3],
                              argument.shape[3]);
            std::uniform_real_distribution<double> uniform(argument.fill_offset - argument.fill_scale,
                                                           argument.fill_offset + argument.fill_scale);
            const bool filled = argument.present && argument.role != Role::output;
            for (std::int64_t r = 0; filled && r < argument.shape[2]; ++r) {
                for (std::int64_t c = 0; c < argument.shape[3]; ++c) tensor.set(r, c, uniform(random));
            }
            if (i < host_.size())
                host_[i] = std::move(tensor);
            else
                host_.push_back(std::move(tensor));
        }
    }

    [[nodiscard]] const Problem& problem() const { return problem_; }

    /// Scalars are those of quantized_linear, which stand in the same order.
    [[nodiscard]] std::vector<HostTensor> run(const Candidate& candidate, int launches = 1) const {
        return run_on_gpu(problem_, candidate, host_, product_.scalars(), {}, launches);
    }

    /// What is wrong with the results, or empty.
    [[nodiscard]] std::string fault_of(const std::vector<HostTensor>& results) {
        if (!wanted_)
            wanted_.emplace(problem_, host_, double{QuantizedCase::epsilon},
                            SharedNormOperands{x_values(), product_.weight_values(), product_.up_values()});
        return wanted_->fault_of(results);
    }

  private:
    [[nodiscard]] std::vector<double> x_values() const {
        std::vector<double> values;
        for (std::int64_t r = 0; r < p_.tokens; ++r) {
            for (std::int64_t k = 0; k < p_.in; ++k)
                values.push_back(host_[shared_norm_quantized_linear::x].at(r, k));
        }
        return values;
    }

    Problem problem_;
    SharedNormQuantizedProblem p_;
    QuantizedCase product_;
    std::vector<HostTensor> host_;
    std::optional<SharedNormExpectation<SharedNormQuantizedProblem>> wanted_;
};

void check(const std::string& norms, const std::string& text, std::size_t count, int launches = 1) {
    SharingCase sharing(norms, text);
    for (const Variant* variant : sharing.problem().family->variants) {
        if (!runs_on(*variant, Bench::get().traits)) continue;
        const std::size_t shown = variant->name == "plain" ? 1 : count;
        std::vector<Candidate> chosen;
        const std::vector<Config> configs = enumerate(sharing.problem(), *variant, Bench::get().traits);
        for (std::size_t i = 0; i < configs.size(); i += 1 + configs.size() / shown)
            chosen.push_back({variant, configs[i]});
        CHECK(!chosen.empty());
        Bench::get().compile(sharing.problem(), chosen);
        for (const Candidate& candidate : chosen) {
            INFO(norms << " " << text << " | " << to_string(candidate));
            const std::vector<HostTensor> results = sharing.run(candidate, launches);
            CHECK(sharing.fault_of(results) == "");
            CHECK(sharing.run(candidate)[shared_norm_quantized_linear::out].bytes ==
                  results[shared_norm_quantized_linear::out].bytes);
        }
    }
}

std::string tokens_text(std::int64_t tokens) { return " tokens=" + std::to_string(tokens); }

}  // namespace

TEST_CASE("quantized products in front of a norm write sums, these times its weight, and squares") {
    for (const std::int64_t tokens : {1, 8, 13, 40}) {
        check("next_norm=yes",
              "dtype=bf16 format=w4a16 group=128 residual=yes in=1024 out=1088" + tokens_text(tokens), 5, 3);
        check("next_norm=yes",
              "dtype=bf16 format=w8a16 bias=yes residual=yes in=528 out=656" + tokens_text(tokens), 3, 3);
    }
    check("next_norm=yes", "dtype=bf16 format=w4a16 group=64 zeros=yes residual=yes in=512 out=320 tokens=7",
          4);
}

TEST_CASE("quantized products behind a norm multiply sums with what squares give") {
    for (const std::int64_t tokens : {1, 8, 13, 40}) {
        check("norm=yes", "dtype=bf16 format=w4a16 group=128 in=1024 out=1096" + tokens_text(tokens), 5, 3);
        check("norm=yes",
              "dtype=bf16 format=w4a16 group=128 gated=yes activation=silu in=512 out=584" +
                  tokens_text(tokens),
              4, 3);
    }
    check("norm=yes", "dtype=bf16 format=w4a16 zeros=yes bias=yes activation=relu in=544 out=200 tokens=5",
          3);
}

// Small enough to run under a sanitizer (tests/run_gpu_tests.sh --sanitize).
TEST_CASE("small calls of quantized products that share a norm are right") {
    check("next_norm=yes", "dtype=bf16 format=w4a16 group=128 residual=yes in=512 out=320 tokens=8", 4);
    check("norm=yes", "dtype=bf16 format=w4a16 group=128 gated=yes activation=silu in=512 out=136 tokens=5",
          4);
    check("norm=yes next_norm=yes", "dtype=bf16 format=w8a16 residual=yes in=512 out=320 tokens=13", 3);
}
