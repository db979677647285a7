#include <algorithm>
#include <utility>
#include <vector>

#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/linear/wgmma/rules.h"
#include "kernel_templates/quantized_linear/rank.h"
#include "kernel_templates/quantized_linear/variants.h"
#include "kernel_templates/quantized_linear/wgmma_w8/plan.h"

namespace hone::quantized_linear {
namespace {
using namespace linear::gemm;

constexpr auto tunables = tunables_of(
    linear::gemm::tunables,
    {tunable<&WgmmaW8Config::promote>(
         "fp8: products of 32 columns that the tensor cores add up before float32 registers do; 0: all",
         {0, 4, 8, 16}),
     neighbours_tunable<&WgmmaW8Config::neighbours>()});

Geometry geometry(const QuantizedProblem& p, const WgmmaW8Config& c) {
    return linear::gemm::geometry(CodeProduct(p), c);
}

/// Sums, and beside them those that the tensor cores add to or the scales that they get in the end.
bool fits_registers(const Geometry& g, std::int64_t promoted) {
    if (promoted == 0) return g.sums() <= (g.gated ? 128 : 192);
    const int used = g.sums() + g.tile_n / 2;
    if (g.blocks_per_sm == 1 && g.consumers == 2) return used <= 192;
    return used + 44 <= std::min(255, 65536 / (g.threads() * g.blocks_per_sm));
}

constexpr auto own_constraints = std::to_array<Constraint>({
    rule("codes of 8 bits are multiplied with codes of x",
         [](const QuantizedProblem& p) { return !p.is_packed(); }),
    rule("rows start at multiples of 16 elements: in and out are multiples of 16",
         [](const QuantizedProblem& p) { return p.in % 16 == 0 && p.out % 16 == 0; }),
    rule("sums of int8 products must fit 32 bits: in below 131072; n of such products is 8 or a multiple of "
         "16",
         through<WgmmaW8Config>(&WgmmaW8Config::tile_n),
         [](const QuantizedProblem& p, const WgmmaW8Config& c) {
             return p.format != QuantFormat::w8a8 || (p.in < 131072 && (c.tile_n == 8 || c.tile_n % 16 == 0));
         }),
    rule("integer sums are exact, blocks of 128 columns have a scale each, and sums of more than 512 fp8 "
         "products lose too much in the tensor cores",
         [](const QuantizedProblem& p, const WgmmaW8Config& c) {
             if (p.format == QuantFormat::w8a8) return c.promote == 0;
             if (p.has_blocks()) return c.promote == 4;
             return c.promote != 0 || p.in <= 512;
         }),
    rule("two warpgroups share whole blocks of 64 rows of codes",
         through<WgmmaW8Config>(&WgmmaW8Config::swapped),
         [](const QuantizedProblem& p, const WgmmaW8Config& c) {
             return c.consumers != 3 && !geometry(p, c).halves();
         }),
    rule("sums are added up while another warpgroup multiplies: not in turn with it",
         [](const WgmmaW8Config& c) { return c.promote == 0 || c.ping_pong == 0; }),
    rule("with blocks the columns of a tile share a scale of the weight",
         through<WgmmaW8Config>(&WgmmaW8Config::swapped),
         [](const QuantizedProblem& p, const WgmmaW8Config& c) {
             return !p.has_blocks() || c.swapped != 0 || scaled_block % geometry(p, c).result_columns() == 0;
         }),
    rule("a thread's sums and scales, or the sums that are added to them, must fit its registers",
         [](const QuantizedProblem& p, const WgmmaW8Config& c) {
             return fits_registers(geometry(p, c), c.promote);
         }),
    rule("steps whose sums several blocks of rows take in turn must leave a stage for the next one",
         [](const QuantizedProblem& p, const WgmmaW8Config& c) {
             const Geometry g = geometry(p, c);
             return g.row_blocks() == 1 || g.stages() > c.promote / 4;
         }),
});
constexpr auto constraints =
    joined(joined(own_constraints, rules<CodeProduct, WgmmaW8Config>), order<CodeProduct, WgmmaW8Config>);

/// Tiles of all widths for more than 128 tokens, between neighbours: some fill the rounds.
void add_widths(std::int64_t tokens, std::vector<WgmmaW8Config>& configs) {
    WgmmaW8Config c;
    c.consumers = 2;
    c.programmatic = 2;
    c.neighbours = 2;
    for (const std::int64_t rows : {128, 256}) {
        c.tile_m = rows;
        for (const std::int64_t width : tunables[index_of(&WgmmaW8Config::tile_n)].values.span()) {
            c.tile_n = width;
            for (const std::int64_t staged : {1, 3}) {
                c.staged = staged;
                c.swapped = 0;
                c.raster = 8;
                if (width >= 64 && width % 16 == 0) configs.push_back(c);
                c.swapped = 1;
                c.raster = width < tokens ? 1 : 8;
                if (tokens <= 2048) configs.push_back(c);
            }
        }
    }
}

/// Sums of fp8 are added up in float32 wherever nobody has measured whether they need to be.
std::optional<WgmmaW8Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const QuantizedProblem p(problem);
    std::vector<WgmmaW8Config> configs;
    for (const linear::gemm::WgmmaConfig& proven : proven_configs(CodeProduct(p)))
        configs.push_back(WgmmaW8Config{proven});
    if (p.tokens > 128) add_widths(p.tokens, configs);
    if (p.format == QuantFormat::fp8) {
        for (WgmmaW8Config& c : configs) {
            c.promote = 4;
            if (c.tile_n >= 64) c.blocks_per_sm = 1;  // sums, and what is added to them
            // Half the columns: as many sums, and half of what is added to them.
            if (c.tile_n == 256) std::swap(c.tile_m, c.tile_n);
        }
    }
    return with_few_early_weights(
        CodeProduct(p), best_of(problem, wgmma_w8, std::span<const WgmmaW8Config>(configs), traits));
}

/// As linear's product with half the bytes and steps; additions between products are not quite hidden.
double predict(const QuantizedProblem& p, const WgmmaW8Config& c, const DeviceTraits& traits) {
    const double additions = c.promote == 0 ? 0.0 : 0.16 / static_cast<double>(c.promote);
    const double fetched = (c.neighbours > 1 ? 0.99 : 1.0) * (c.staged == 3 ? 0.99 : 1.0);
    return (1 + additions) * linear::gemm::predict_fetched(CodeProduct(p), c, traits, fetched) +
           quantize_us(p, traits);
}

}  // namespace

const Variant wgmma_w8{.name = "wgmma_w8",
                       .summary = "warpgroup tensor cores on codes of 8 bits, both from tensor copies",
                       .source = "quantized_linear/wgmma_w8/kernel.cu",
                       .min_arch = {9, 0, true},
                       .tunables = tunables,
                       .constraints = constraints,
                       .kernels = wgmma_w8_kernels,
                       .plan = typed<wgmma_w8_plan>,
                       .fallback = typed<fallback>,
                       .access_elements = typed<wgmma_w8_access_elements>,
                       .predict_us = typed<predict>};

}  // namespace hone::quantized_linear
