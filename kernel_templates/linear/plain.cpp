#include "kernel_templates/linear/normalize.h"
#include "kernel_templates/linear/plain_product.h"

namespace hone::linear {
namespace {

using namespace plain_product;

Operands operands(const Problem& problem, const Config& config) {
    const LinearProblem p = linear_problem(problem);
    const std::int64_t registers = ceil_div(config[vector] * p.element_bytes(), 4) + 1;
    return {.product = p,
            .bytes = p.weight_bytes() + p.x_bytes() + p.out_bytes(),
            .weights_a_load = config[vector],
            .x_registers = registers,
            .weight_registers = registers,
            .stage_operations = config[vector] == 1 ? 12.0 : 4.0};
}

constexpr Constraint constraints[] = {
    block_has_threads,       loads_fit_rows<operands>, tile_has_tokens<operands>,
    registers_fit<operands>, buffers_fit<operands>,    programmatic_needs_sm_90<programmatic>,
};

Plan plan(const Problem& problem, const Config& config, const DeviceTraits&) {
    const LinearProblem p = linear_problem(problem);
    Plan plan{.launch_count = 1};
    plan.launches[0] =
        launch("linear_plain", {static_cast<std::uint32_t>(blocks(p, config)), 1, 1}, threads(config));
    plan.launches[0].programmatic = config[programmatic] != 0;
    return normalize_first(p, plan);
}

double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    return plain_product::predict_us(operands(problem, config), config, traits) +
           normalize_us(linear_problem(problem), traits);
}

std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    return fallback_config(linear_problem(problem), traits);
}

}  // namespace

const Variant plain{.name = "plain",
                    .summary = "tiles in shared memory, products on the CUDA cores: any size on any chip",
                    .source = "linear/plain.cu",
                    .tunables = tunables,
                    .constraints = constraints,
                    .plan = plan,
                    .fallback = fallback,
                    .access_elements = [](const Problem&, const Config& config) { return config[vector]; },
                    .predict_us = predict};

}  // namespace hone::linear
