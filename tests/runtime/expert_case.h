// A layer of experts with its tensors and what must come out of it, for tests of both families on the GPU.
// What a family's weights and rows of x are as numbers, the tests say.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kernel_templates/expert_linear/expert_linear.h"
#include "tests/runtime/activation.h"
#include "tests/runtime/expert_routes.h"
#include "tests/runtime/gpu_run.h"

namespace hone::test {

class ExpertCase {
  public:
    /// `padding`: elements between rows of x and of out, where they have more than one.
    ExpertCase(const Problem& problem, const expert_linear::ExpertProblem& sizes, Spread spread,
               std::int64_t padding)
        : problem_(problem),
          p_(sizes),
          padding_(padding),
          random_(static_cast<std::uint64_t>(p_.in * 7919 + p_.out * 31 + p_.tokens * 5 + p_.experts)),
          routes_(spread, p_.places(), p_.experts, random_),
          arguments_(problem_.family->arguments(problem_)) {
        for (const Argument& argument : arguments_) host_.push_back(made(argument));
    }

    [[nodiscard]] const Problem& problem() const { return problem_; }
    [[nodiscard]] bool suits(const Candidate& candidate) const {
        const std::int64_t most = 16 / p_.element_bytes();
        const std::int64_t access =
            std::min(candidate.variant->access_elements(problem_, candidate.config), most);
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
        const std::size_t out = index_of("out");
        return test::fault_of(results[out], wanted_, p_.out_rows(), p_.out,
                              problem_.family->tolerance(problem_, static_cast<int>(out)));
    }
    /// Whether nothing was written behind any row of out.
    [[nodiscard]] bool gaps_untouched(const std::vector<HostTensor>& results) const {
        for (std::int64_t row = 0; row < p_.out_rows(); ++row) {
            if (!results[index_of("out")].padding_untouched(row)) return false;
        }
        return true;
    }

  protected:
    [[nodiscard]] const expert_linear::ExpertProblem& sizes() const { return p_; }
    [[nodiscard]] const Argument& argument(std::string_view name) const { return arguments_[index_of(name)]; }
    [[nodiscard]] double number(std::string_view name, std::int64_t row, std::int64_t column) const {
        return host_[index_of(name)].at(row, column);
    }
    /// Rows of `in` numbers of a tensor.
    [[nodiscard]] std::vector<double> matrix(std::string_view name, std::int64_t rows) const {
        std::vector<double> values;
        for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < p_.in; ++c) values.push_back(number(name, r, c));
        }
        return values;
    }
    /// What the products multiply: [x_rows, in], and [experts * out, in] each; `up` is empty without gates.
    void expect(const std::vector<double>& x, const std::vector<double>& weight,
                const std::vector<double>& up) {
        wanted_.assign(static_cast<std::size_t>(p_.out_rows() * p_.out), 0.0);
        for (std::int64_t place = 0; place < p_.places(); ++place) {
            const std::int64_t pair = routes_.rows[static_cast<std::size_t>(place)];
            const std::int64_t expert = routes_.experts[static_cast<std::size_t>(pair)];
            const std::int64_t row = p_.gather ? pair / p_.top_k : place;
            for (std::int64_t c = 0; c < p_.out; ++c) {
                const double bias = p_.bias ? number("bias", expert, c) : 0.0;
                const double first = product(x, row, weight, expert * p_.out + c) + bias;
                if (!p_.gated) {
                    add(place, pair, c, activate(p_.activation, first));
                    continue;
                }
                const double up_bias = p_.gated_bias() ? number("up_bias", expert, c) : 0.0;
                const double second = product(x, row, up, expert * p_.out + c) + up_bias;
                add(place, pair, c, join_gated(p_.activation, first, second));
            }
        }
    }

  private:
    [[nodiscard]] std::int64_t padding(std::int64_t rows) const { return rows == 1 ? 0 : padding_; }
    [[nodiscard]] std::size_t index_of(std::string_view name) const {
        const auto found = std::ranges::find(arguments_, name, &Argument::name);
        if (found == arguments_.end())
            throw std::logic_error(std::string(name) + ": there is no such argument");
        return static_cast<std::size_t>(found - arguments_.begin());
    }

    /// As tuning draws it. Codes of 4 bits are two a byte, any byte.
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
        std::uniform_real_distribution<double> uniform(argument.fill_offset - argument.fill_scale,
                                                       argument.fill_offset + argument.fill_scale);
        for (std::int64_t r = 0; r < rows; ++r) {
            if (indices != nullptr) {
                tensor.set_index(r, (*indices)[static_cast<std::size_t>(r)]);
                continue;
            }
            for (std::int64_t c = 0; c < columns; ++c) {
                double value = argument.fill == Fill::uniform ? uniform(random_) : normal(random_);
                if (argument.dtype == Dtype::int8) value = std::nearbyint(value);
                tensor.set(r, c, value);
            }
        }
        return tensor;
    }

    [[nodiscard]] double product(const std::vector<double>& x, std::int64_t row,
                                 const std::vector<double>& weight, std::int64_t weight_row) const {
        return dot(x.data() + row * p_.in, weight.data() + weight_row * p_.in, p_.in);
    }
    void add(std::int64_t place, std::int64_t pair, std::int64_t column, double value) {
        if (!p_.combine) {
            wanted_[static_cast<std::size_t>(place * p_.out + column)] = value;
            return;
        }
        const double share = number("routing_weights", pair / p_.top_k, pair % p_.top_k);
        wanted_[static_cast<std::size_t>(pair / p_.top_k * p_.out + column)] += share * value;
    }

    Problem problem_;
    expert_linear::ExpertProblem p_;
    std::int64_t padding_;
    std::mt19937_64 random_;
    ExpertRoutes routes_;
    std::vector<Argument> arguments_;
    std::vector<HostTensor> host_;
    std::vector<double> wanted_;
};

/// Holds the default and `each` candidates of every variant against what is wanted.
inline void check_candidates(const ExpertCase& experts, std::size_t each) {
    for (const Candidate& candidate : sample_of(experts, each)) {
        INFO(to_string(experts.problem()) << " | " << to_string(candidate));
        CHECK(experts.fault_of(experts.run(candidate)) == "");
    }
}
/// With starts and rows that are wrong: nothing is written behind any row.
inline void check_gaps(const ExpertCase& experts, std::size_t each) {
    for (const Candidate& candidate : sample_of(experts, each)) {
        INFO(to_string(experts.problem()) << " | " << to_string(candidate));
        CHECK(experts.gaps_untouched(experts.run(candidate)));
    }
}

}  // namespace hone::test
