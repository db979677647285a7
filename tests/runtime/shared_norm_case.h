// What products that share a norm have to make of a call, for tests of their families on the GPU: in double,
// on the host, from the tensors that the call is given. The families name those alike.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel_templates/shared_norm_linear/slots.h"
#include "tests/runtime/activation.h"
#include "tests/runtime/gpu_run.h"

namespace hone::test {

/// What such a product multiplies, as numbers.
struct SharedNormOperands {
    std::vector<double> x;           ///< [tokens, in]
    std::span<const double> weight;  ///< [out, in]
    std::span<const double> up;      ///< [out, in]; of gated products
};

/// P is the family's problem as plain numbers.
template <class P>
class SharedNormExpectation {
  public:
    /// `tensors` are the call's, one an argument, and have to live as long as this does.
    SharedNormExpectation(const Problem& problem, const std::vector<HostTensor>& tensors, double epsilon,
                          const SharedNormOperands& operands)
        : problem_(problem), p_(problem), tensors_(tensors) {
        squares_.assign(static_cast<std::size_t>(p_.tokens * p_.slots()), 0.0);
        for (std::int64_t token = 0; token < p_.tokens; ++token) {
            const double of_token = factor(token, epsilon);
            for (std::int64_t column = 0; column < p_.out; ++column)
                add(token, column, result(token, column, of_token, operands));
        }
    }

    /// What is wrong with the results of a call, one an argument, or empty.
    [[nodiscard]] std::string fault_of(const std::vector<HostTensor>& results) const {
        if (std::string wrong = fault_of(results, "out", out_, p_.out); !wrong.empty()) return wrong;
        if (!p_.next_norm) return {};
        if (std::string wrong = fault_of(results, "scaled", scaled_, p_.out); !wrong.empty()) return wrong;
        return fault_of(results, "squares", squares_, p_.slots());
    }

  private:
    [[nodiscard]] std::size_t place_of(std::string_view argument) const {
        const std::vector<Argument> all = problem_.family->arguments(problem_);
        const auto found = std::ranges::find(all, argument, &Argument::name);
        REQUIRE(found != all.end());
        return static_cast<std::size_t>(found - all.begin());
    }
    [[nodiscard]] std::string fault_of(const std::vector<HostTensor>& results, std::string_view argument,
                                       std::span<const double> wanted, std::int64_t columns) const {
        const std::size_t place = place_of(argument);
        const std::string wrong =
            test::fault_of(results[place], wanted, p_.tokens, columns,
                           problem_.family->tolerance(problem_, static_cast<int>(place)));
        return wrong.empty() ? wrong : std::string(argument) + ": " + wrong;
    }

    /// What the norm in front multiplies a token's row with.
    [[nodiscard]] double factor(std::int64_t token, double epsilon) const {
        if (!p_.norm) return 1;
        double sum = 0;
        for (std::int64_t slot = 0; slot < p_.x_slots(); ++slot) sum += norm_squares_.at(token, slot);
        return 1 / std::sqrt(sum / static_cast<double>(p_.in) + epsilon);
    }
    [[nodiscard]] double product(std::span<const double> x, std::int64_t token,
                                 std::span<const double> weight, std::int64_t row) const {
        double sum = 0;
        for (std::int64_t k = 0; k < p_.in; ++k)
            sum += x[static_cast<std::size_t>(token * p_.in + k)] *
                   weight[static_cast<std::size_t>(row * p_.in + k)];
        return sum;
    }
    [[nodiscard]] double result(std::int64_t token, std::int64_t column, double of_token,
                                const SharedNormOperands& operands) const {
        double value = of_token * product(operands.x, token, operands.weight, column);
        if (p_.bias) value += bias_.at(0, column);
        value = activate(p_.activation, value);
        if (p_.gated) value *= of_token * product(operands.x, token, operands.up, column);
        return p_.residual ? value + residual_.at(token, column) : value;
    }
    void add(std::int64_t token, std::int64_t column, double value) {
        out_.push_back(value);
        if (!p_.next_norm) return;
        scaled_.push_back(value * norm_weight_.at(0, column));
        squares_[static_cast<std::size_t>(token * p_.slots() + column / linear::square_columns)] +=
            value * value;
    }

    Problem problem_;
    P p_;
    const std::vector<HostTensor>& tensors_;
    const HostTensor& norm_squares_ = tensors_[place_of("norm_squares")];
    const HostTensor& norm_weight_ = tensors_[place_of("norm_weight")];
    const HostTensor& bias_ = tensors_[place_of("bias")];
    const HostTensor& residual_ = tensors_[place_of("residual")];
    std::vector<double> out_;
    std::vector<double> scaled_;
    std::vector<double> squares_;
};

}  // namespace hone::test
