#include "kernel_templates/quantized_linear/quantized_linear.h"

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

}  // namespace hone::quantized_linear
