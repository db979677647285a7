#include "kernel_templates/linear/plain_product.h"
#include "kernel_templates/quantized_linear/quantize.h"

namespace hone::quantized_linear {
namespace {

using namespace linear::plain_product;

Operands operands(const Problem& problem, const Config& config) {
    const QuantizedProblem p = quantized_problem(problem);
    return {.product = p.dense(),
            .bytes = p.weight_bytes() + p.x_bytes() + p.out_bytes(),
            .weights_a_load = config[vector] * (p.bits() == 4 ? 2 : 1),
            .x_registers = 3,
            .weight_registers = p.zeros ? 5 : 3,
            .stage_operations = config[vector] == 1 ? 16.0 : 6.0};
}

constexpr Constraint constraints[] = {
    {"a step multiplies the 16 columns that a word of packed codes covers",
     [](const Problem&, const Config& c, const DeviceTraits&) { return c[tile_in] == 16; }},
    block_has_threads,
    loads_fit_rows<operands>,
    tile_has_tokens<operands>,
    registers_fit<operands>,
    buffers_fit<operands>,
    linear::programmatic_needs_sm_90<programmatic>,
};

Plan plan(const Problem& problem, const Config& config, const DeviceTraits&) {
    const QuantizedProblem p = quantized_problem(problem);
    Plan plan{.launch_count = 1};
    plan.launches[0] = launch("quantized_linear_plain",
                              {static_cast<std::uint32_t>(blocks(p.dense(), config)), 1, 1}, threads(config));
    plan.launches[0].programmatic = config[programmatic] != 0;
    return prepare_first(p, plan);
}

double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    return linear::plain_product::predict_us(operands(problem, config), config, traits) +
           prepare_us(quantized_problem(problem), traits);
}

std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    return fallback_config(quantized_problem(problem).dense(), traits);
}

}  // namespace

const Variant plain{.name = "plain",
                    .summary = "tiles in shared memory, products on the CUDA cores: any size on any chip",
                    .source = "quantized_linear/plain.cu",
                    .tunables = tunables,
                    .constraints = constraints,
                    .plan = plan,
                    .fallback = fallback,
                    .access_elements = [](const Problem&, const Config& config) { return config[vector]; },
                    .predict_us = predict};

}  // namespace hone::quantized_linear
