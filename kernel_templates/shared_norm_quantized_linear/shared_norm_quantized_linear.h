// A norm that two quantized linear layers share, on the host: the problem as plain numbers, and what
// quantized_linear, whose kernels it has, calls the same.
#pragma once

#include "kernel_templates/quantized_linear/quantized_linear.h"
#include "kernel_templates/shared_norm_linear/slots.h"
#include "kernel_templates/shared_norm_quantized_linear/declaration.h"

namespace hone::shared_norm_quantized_linear {

struct SharedNormQuantizedProblem : Fields, shared_norm_linear::Slots<SharedNormQuantizedProblem> {
    SharedNormQuantizedProblem() = default;
    explicit SharedNormQuantizedProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    /// Without what it has of a norm.
    [[nodiscard]] quantized_linear::QuantizedProblem product() const {
        quantized_linear::QuantizedProblem p;
        p.dtype = dtype;
        p.format = format;
        p.group = group;
        p.zeros = zeros;
        p.quantized_x = quantized_x;
        p.activation = activation;
        p.gated = gated;
        p.bias = bias;
        p.residual = residual;
        p.in = in;
        p.out = out;
        p.tokens = tokens;
        return p;
    }
};

/// product() in the words of quantized_linear.
[[nodiscard]] Problem quantized_problem(const Problem& sharing);

extern const Variant ring;
extern const Variant plain;

}  // namespace hone::shared_norm_quantized_linear
