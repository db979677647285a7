#include "kernel_templates/quantized_expert_linear/quantized_expert_linear.h"

namespace hone::quantized_expert_linear {

QuantizedExpertProblem::QuantizedExpertProblem(const Problem& problem) {
    const auto of = quantized_expert_linear::fields_of(problem);
    dtype = of.dtype;
    format = of.format;
    group = of.group;
    zeros = of.zeros;
    activation = of.activation;
    gated = of.gated;
    bias = of.bias;
    gather = of.gather;
    combine = of.combine;
    experts = of.experts;
    top_k = of.top_k;
    in = of.in;
    out = of.out;
    tokens = of.tokens;
}

quantized_linear::QuantizedProblem QuantizedExpertProblem::coded(std::int64_t rows) const {
    quantized_linear::QuantizedProblem p;
    p.dtype = dtype;
    p.format = format;
    p.group = group;
    p.zeros = zeros;
    p.activation = activation;
    p.gated = gated;
    p.bias = bias;
    p.in = in;
    p.out = out;
    p.tokens = rows;
    return p;
}

}  // namespace hone::quantized_expert_linear
