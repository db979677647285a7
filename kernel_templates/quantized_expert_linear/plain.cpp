#include "kernel_templates/linear/plain_product_rules.h"
#include "kernel_templates/quantized_expert_linear/plain_plan.h"
#include "kernel_templates/quantized_expert_linear/rank.h"
#include "kernel_templates/quantized_expert_linear/variants.h"

namespace hone::quantized_expert_linear {
namespace {

namespace product = linear::plain_product;

/// The product of a linear layer with as many tiles.
product::Operands operands(const QuantizedExpertProblem& p, const PlainConfig& c) {
    return {.product = p.dense(p.tiles(c.tile_tokens) * c.tile_tokens),
            .bytes = moved_bytes(p),
            .weights_a_load = c.vector * (p.bits() == 4 ? 2 : 1),
            .x_registers = 5,
            .weight_registers = p.zeros ? 5 : 3,
            .stage_operations = c.vector == 1 ? 16.0 : 6.0};
}

constexpr Constraint constraints[] = {
    rule("a step multiplies the 16 columns that a word of packed codes covers",
         [](const PlainConfig& c) { return c.tile_in == 16; }),
    product::block_has_threads,
    product::loads_fit_rows<QuantizedExpertProblem, operands>,
    rule("tiles of more than 16 rows are for experts that have more",
         [](const QuantizedExpertProblem& p, const PlainConfig& c) {
             return c.tile_tokens == 16 || c.tile_tokens < 2 * p.rows_an_active();
         }),
    product::registers_fit<QuantizedExpertProblem, operands>,
    product::buffers_fit<QuantizedExpertProblem, operands>,
    programmatic_needs_sm_90<PlainConfig>,
};

double predict(const QuantizedExpertProblem& p, const PlainConfig& c, const DeviceTraits& traits) {
    return 1.0 + product::predict_us(operands(p, c), c, traits) + around_us(p, traits, c.programmatic != 0);
}

std::optional<PlainConfig> fallback(const QuantizedExpertProblem& p, const DeviceTraits& traits) {
    PlainConfig c = product::fallback_config(p.dense(p.rows_an_active()), traits);
    c.tile_in = 16;
    return c;
}

std::int64_t access_elements(const QuantizedExpertProblem&, const PlainConfig& c) { return c.vector; }

}  // namespace

const Variant plain{.name = "plain",
                    .summary = "tiles in shared memory, products on the CUDA cores: any size on any chip",
                    .source = "quantized_expert_linear/plain.cu",
                    .tunables = product::tunables,
                    .constraints = constraints,
                    .kernels = plain_kernels,
                    .plan = typed<plain_plan>,
                    .fallback = typed<fallback>,
                    .access_elements = typed<access_elements>,
                    .predict_us = typed<predict>};

}  // namespace hone::quantized_expert_linear
