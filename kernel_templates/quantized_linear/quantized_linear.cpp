#include "kernel_templates/quantized_linear/quantized_linear.h"

#include <cmath>

namespace hone::quantized_linear {

linear::LinearProblem QuantizedProblem::dense() const {
    linear::LinearProblem product;
    product.dtype = dtype;
    product.norm = norm;
    product.activation = activation;
    product.gated = gated;
    product.bias = bias;
    product.residual = residual;
    product.in = in;
    product.out = out;
    product.tokens = tokens;
    return product;
}

double QuantizedProblem::alike_roundings() const {
    if (!is_packed()) return 1.0;
    constexpr double of_one_group = 1.5;
    return std::sqrt(1.0 + (of_one_group * of_one_group - 1.0) / static_cast<double>(groups()));
}

}  // namespace hone::quantized_linear
