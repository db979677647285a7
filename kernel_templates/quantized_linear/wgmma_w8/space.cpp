#include <algorithm>
#include <utility>

#include "kernel_templates/linear/wgmma/rules.h"
#include "kernel_templates/quantized_linear/quantize.h"
#include "kernel_templates/quantized_linear/quantized_linear.h"

namespace hone::quantized_linear {
namespace {

using namespace linear::gemm;

/// Behind linear's (linear/wgmma/product.h).
constexpr std::size_t promote = linear::gemm::programmatic + 1;
constexpr Tunable own_tunables[] = {
    {"promote",
     "fp8: products of 32 columns that the tensor cores add up before float32 registers do; 0: all",
     {0, 4, 8, 16}},
};
constexpr auto tunables = joined(linear::gemm::tunables, own_tunables);

/// The product of codes, as if there were no norm: that one is the quantizing launch's.
linear::LinearProblem product(const Problem& problem) {
    const QuantizedProblem p = quantized_problem(problem);
    linear::LinearProblem product = p.dense();
    product.dtype = p.format == Format::fp8 ? Dtype::fp8_e4m3 : Dtype::int8;
    product.norm = false;
    return product;
}
Geometry geometry(const Problem& problem, const Config& config) {
    return linear::gemm::geometry(product(problem), config);
}
bool has_blocks(const QuantizedProblem& p) { return p.format == Format::fp8 && p.group != 0; }

/// Sums, and beside them those that the tensor cores add to or the scales that they get in the end.
bool fits_registers(const Geometry& g, std::int64_t promoted) {
    if (promoted == 0) return g.sums() <= (g.gated ? 128 : 192);
    const int used = g.sums() + g.tile_n / 2;
    if (g.blocks_per_sm == 1 && g.consumers == 2) return used <= 192;
    return used + 44 <= std::min(255, 65536 / (g.threads() * g.blocks_per_sm));
}

constexpr Constraint own_constraints[] = {
    {"codes of 8 bits are multiplied with codes of x",
     [](const Problem& p, const Config&, const DeviceTraits&) { return !quantized_problem(p).is_packed(); }},
    {"rows start at multiples of 16 elements: in and out are multiples of 16",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return quantized_problem(p).in % 16 == 0 && quantized_problem(p).out % 16 == 0;
     }},
    {"sums of int8 products must fit 32 bits: in below 131072; n of such products is 8 or a multiple of 16",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const QuantizedProblem p = quantized_problem(problem);
         return p.format != Format::w8a8 || (p.in < 131072 && (c[tile_n] == 8 || c[tile_n] % 16 == 0));
     }},
    {"integer sums are exact, blocks of 128 columns have a scale each, and sums of more than 512 fp8 "
     "products "
     "lose too much in the tensor cores",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const QuantizedProblem p = quantized_problem(problem);
         if (p.format == Format::w8a8) return c[promote] == 0;
         if (has_blocks(p)) return c[promote] == 4;
         return c[promote] != 0 || p.in <= 512;
     }},
    {"sums are added up while another warpgroup multiplies: not in turn with it",
     [](const Problem&, const Config& c, const DeviceTraits&) {
         return c[promote] == 0 || c[ping_pong] == 0;
     }},
    {"with blocks the columns of a tile share a scale of the weight",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return !has_blocks(quantized_problem(problem)) || c[swapped] != 0 ||
                scaled_block % geometry(problem, c).result_columns() == 0;
     }},
    {"a thread's sums and scales, or the sums that are added to them, must fit its registers",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return fits_registers(geometry(problem, c), c[promote]);
     }},
    {"steps whose sums several blocks of rows take in turn must leave a stage for the next one",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(problem, c);
         return g.row_blocks() == 1 || g.stages() > c[promote] / 4;
     }},
};
constexpr auto constraints = joined(own_constraints, rules<product>);

Plan plan(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const QuantizedProblem p = quantized_problem(problem);
    Plan plan = plan_product("quantized_linear_wgmma_w8", product(problem), config, traits,
                             {.result = p.dtype,
                              .x = x,
                              .weight = weight,
                              .up = up,
                              .out = out,
                              .x_stride = x_stride,
                              .weight_stride = weight_stride,
                              .up_stride = up_stride,
                              .out_stride = out_stride});
    Launch& gemm = plan.launches[0];
    for (const int index : {x_scales, scales, up_scales, bias, residual, out, workspace})
        gemm.args[gemm.arg_count++] = pointer_arg(index);
    for (const int index : {tokens, x_scale_stride, scale_stride, residual_stride, out_stride})
        gemm.args[gemm.arg_count++] = scalar_arg(index);
    return quantize_first(p, plan);
}

/// Sums of fp8 are added up in float32 wherever nobody has measured whether they need to be.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    std::vector<Config> configs = proven_configs(product(problem));
    for (Config& config : configs) {
        if (quantized_problem(problem).format != Format::fp8) continue;
        config[promote] = 4;
        if (config[tile_n] >= 64) config[blocks_per_sm] = 1;  // sums, and what is added to them
        // Half the columns: as many sums, and half of what is added to them.
        if (config[tile_n] == 256) std::swap(config[tile_m], config[tile_n]);
    }
    return linear::best_of(problem, wgmma_w8, configs, traits);
}

/// As linear's product with half the bytes and steps; additions between products are not quite hidden.
double predict_us(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const double additions = config[promote] == 0 ? 0.0 : 0.16 / static_cast<double>(config[promote]);
    return (1 + additions) * predict(product(problem), config, traits) +
           quantize_us(quantized_problem(problem), traits);
}

}  // namespace

const Variant wgmma_w8{.name = "wgmma_w8",
                       .summary = "warpgroup tensor cores on codes of 8 bits, both from tensor copies",
                       .source = "quantized_linear/wgmma_w8/kernel.cu",
                       .min_arch = {9, 0, true},
                       .tunables = tunables,
                       .constraints = constraints,
                       .plan = plan,
                       .fallback = fallback,
                       .access_elements = [](const Problem&, const Config&) { return std::int64_t{16}; },
                       .predict_us = predict_us};

}  // namespace hone::quantized_linear
