// Linear on the host: the problem as numbers. A variant's plan stands in <variant>_plan.cpp, its space and
// cost in <variant>.cpp, beside <variant>.cu; variants of many files have a folder with plan.cpp, space.cpp,
// rank.cpp and kernel.cu.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernel_templates/kit/ceil_div.h"
#include "kernel_templates/linear/declaration.h"

namespace hone::linear {

struct LinearProblem : Fields {
    LinearProblem() = default;
    explicit LinearProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
    /// Weights: x is multiplied with each of them.
    [[nodiscard]] std::int64_t products() const { return gated ? 2 : 1; }
    /// Bytes of all weights.
    [[nodiscard]] double weight_bytes() const {
        return static_cast<double>(products() * out * element_bytes()) * static_cast<double>(in);
    }
    [[nodiscard]] double x_bytes() const {
        return static_cast<double>(tokens * element_bytes()) * static_cast<double>(in);
    }
    /// Results, and what is added to them: of products of 8-bit codes they have 16 bits.
    [[nodiscard]] double out_bytes() const {
        const std::int64_t result_bytes = element_bytes() == 1 ? 2 : element_bytes();
        return static_cast<double>(tokens * (residual ? 2 : 1) * result_bytes) * static_cast<double>(out);
    }
    [[nodiscard]] double flops() const {
        return 2.0 * static_cast<double>(products() * tokens) * static_cast<double>(in) *
               static_cast<double>(out);
    }
    /// Standard deviation of weights whose results have the size of x.
    [[nodiscard]] double weight_deviation() const { return 1.0 / std::sqrt(static_cast<double>(in)); }
};

}  // namespace hone::linear
