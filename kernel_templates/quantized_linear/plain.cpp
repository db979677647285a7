#include "kernel_templates/linear/plain_product_rules.h"
#include "kernel_templates/quantized_linear/plain_plan.h"
#include "kernel_templates/quantized_linear/rank.h"
#include "kernel_templates/quantized_linear/variants.h"

namespace hone::quantized_linear {
namespace {

using namespace linear::plain_product;

Operands operands(const QuantizedProblem& p, const PlainConfig& c) {
    return {.product = p.dense(),
            .bytes = p.weight_bytes() + p.x_bytes() + p.out_bytes(),
            .weights_a_load = c.vector * (p.bits() == 4 ? 2 : 1),
            .x_registers = 3,
            .weight_registers = p.zeros ? 5 : 3,
            .stage_operations = c.vector == 1 ? 16.0 : 6.0};
}

constexpr Constraint constraints[] = {
    rule("a step multiplies the 16 columns that a word of packed codes covers",
         [](const PlainConfig& c) { return c.tile_in == 16; }),
    block_has_threads,
    loads_fit_rows<QuantizedProblem, operands>,
    tile_has_tokens<QuantizedProblem, operands>,
    registers_fit<QuantizedProblem, operands>,
    buffers_fit<QuantizedProblem, operands>,
    programmatic_needs_sm_90<PlainConfig>,
};

double predict(const QuantizedProblem& p, const PlainConfig& c, const DeviceTraits& traits) {
    return predict_us(operands(p, c), c, traits) + prepare_us(p, traits);
}

std::optional<PlainConfig> fallback(const QuantizedProblem& p, const DeviceTraits& traits) {
    return fallback_config(p.dense(), traits);
}

}  // namespace

const Variant plain{.name = "plain",
                    .summary = "tiles in shared memory, products on the CUDA cores: any size on any chip",
                    .source = "quantized_linear/plain.cu",
                    .tunables = tunables,
                    .constraints = constraints,
                    .kernels = plain_kernels,
                    .plan = typed<plain_plan>,
                    .fallback = typed<fallback>,
                    .access_elements = typed<plain_access_elements>,
                    .predict_us = typed<predict>};

}  // namespace hone::quantized_linear
