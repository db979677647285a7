#include "kernel_templates/expert_linear/combine_rank.h"
#include "kernel_templates/expert_linear/plain_plan.h"
#include "kernel_templates/expert_linear/variants.h"
#include "kernel_templates/linear/plain_product_rules.h"

namespace hone::expert_linear {
namespace {

namespace product = linear::plain_product;

/// The product of a linear layer with as many tiles.
product::Operands operands(const ExpertProblem& p, const PlainConfig& c) {
    const linear::LinearProblem dense = p.dense(p.tiles(c.tile_tokens) * c.tile_tokens);
    const std::int64_t registers = ceil_div(c.vector * p.element_bytes(), 4) + 1;
    return {.product = dense,
            .bytes = p.weight_bytes() + dense.x_bytes() + dense.out_bytes(),
            .weights_a_load = c.vector,
            .x_registers = registers + 2,
            .weight_registers = registers,
            .stage_operations = c.vector == 1 ? 12.0 : 4.0};
}

constexpr Constraint constraints[] = {
    product::block_has_threads,
    product::loads_fit_rows<ExpertProblem, operands>,
    rule("tiles of more than 16 rows are for experts that have more",
         [](const ExpertProblem& p, const PlainConfig& c) {
             return c.tile_tokens == 16 || c.tile_tokens < 2 * p.rows_an_active();
         }),
    product::registers_fit<ExpertProblem, operands>,
    product::buffers_fit<ExpertProblem, operands>,
    programmatic_needs_sm_90<PlainConfig>,
};

double predict(const ExpertProblem& p, const PlainConfig& c, const DeviceTraits& traits) {
    return 1.0 + product::predict_us(operands(p, c), c, traits) + combine_us(p, traits, c.programmatic != 0);
}

std::optional<PlainConfig> fallback(const ExpertProblem& p, const DeviceTraits& traits) {
    return product::fallback_config(p.dense(p.rows_an_active()), traits);
}

std::int64_t access_elements(const ExpertProblem&, const PlainConfig& c) { return c.vector; }

}  // namespace

const Variant plain{.name = "plain",
                    .summary = "tiles in shared memory, products on the CUDA cores: any size on any chip",
                    .source = "expert_linear/plain.cu",
                    .tunables = product::tunables,
                    .constraints = constraints,
                    .kernels = plain_kernels,
                    .plan = typed<plain_plan>,
                    .fallback = typed<fallback>,
                    .access_elements = typed<access_elements>,
                    .predict_us = typed<predict>};

}  // namespace hone::expert_linear
