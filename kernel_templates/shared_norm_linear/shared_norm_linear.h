// A norm that two linear layers share, on the host: the problem as plain numbers, and what linear, whose
// kernels it has, calls the same.
#pragma once

#include "kernel_templates/linear/linear.h"
#include "kernel_templates/shared_norm_linear/declaration.h"
#include "kernel_templates/shared_norm_linear/slots.h"

namespace hone::shared_norm_linear {

struct SharedNormProblem : Fields, Slots<SharedNormProblem> {
    SharedNormProblem() = default;
    explicit SharedNormProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    /// Without what it has of a norm.
    [[nodiscard]] linear::LinearProblem product() const {
        linear::LinearProblem p;
        p.dtype = dtype;
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

/// product() in the words of linear.
[[nodiscard]] Problem linear_problem(const Problem& sharing);

extern const Variant ring;
extern const Variant wgmma;
extern const Variant strips;
extern const Variant gemv;
extern const Variant plain;

}  // namespace hone::shared_norm_linear
