#include "kernel_templates/linear/normalize_rank.h"
#include "kernel_templates/linear/plain_plan.h"
#include "kernel_templates/linear/plain_product_rules.h"
#include "kernel_templates/linear/variants.h"

namespace hone::linear {
namespace {

using namespace plain_product;

Operands operands(const LinearProblem& p, const PlainConfig& c) {
    const std::int64_t registers = ceil_div(c.vector * p.element_bytes(), 4) + 1;
    return {.product = p,
            .bytes = p.weight_bytes() + p.x_bytes() + p.out_bytes(),
            .weights_a_load = c.vector,
            .x_registers = registers,
            .weight_registers = registers,
            .stage_operations = c.vector == 1 ? 12.0 : 4.0};
}

constexpr Constraint constraints[] = {
    block_has_threads,
    loads_fit_rows<LinearProblem, operands>,
    tile_has_tokens<LinearProblem, operands>,
    registers_fit<LinearProblem, operands>,
    buffers_fit<LinearProblem, operands>,
    programmatic_needs_sm_90<PlainConfig>,
};

double predict(const LinearProblem& p, const PlainConfig& c, const DeviceTraits& traits) {
    return predict_us(operands(p, c), c, traits) + normalize_us(p, traits);
}

std::optional<PlainConfig> fallback(const LinearProblem& p, const DeviceTraits& traits) {
    return fallback_config(p, traits);
}

}  // namespace

const Variant plain{.name = "plain",
                    .summary = "tiles in shared memory, products on the CUDA cores: any size on any chip",
                    .source = "linear/plain.cu",
                    .tunables = tunables,
                    .constraints = constraints,
                    .kernels = plain_kernels,
                    .plan = typed<plain_plan>,
                    .fallback = typed<fallback>,
                    .access_elements = typed<plain_access_elements>,
                    .predict_us = typed<predict>};

}  // namespace hone::linear
