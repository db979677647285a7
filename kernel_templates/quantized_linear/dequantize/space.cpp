#include "kernel_templates/kit/fixed_answers.h"
#include "kernel_templates/linear/wgmma/rules.h"
#include "kernel_templates/quantized_linear/dequantize/plan.h"
#include "kernel_templates/quantized_linear/rank.h"
#include "kernel_templates/quantized_linear/variants.h"

namespace hone::quantized_linear {
namespace {

using namespace linear::gemm;

/// With fewer, wgmma_w16 reads the codes and multiplies in the time in which the numbers are written.
constexpr std::int64_t least_tokens = 257;
/// The workspace's share of the device's memory: all layers of a model may use the same one.
constexpr std::int64_t memory_parts = 32;
/// Shared memory of the launch that writes numbers: 16 rows of a block a warp. It is static, so it counts for
/// all kernels of the image.
constexpr std::int64_t staged_bytes = unpacked::threads / 32 * 16 * block_columns * 2;

constexpr auto own_constraints = std::to_array<Constraint>({
    rule("codes of 4 or 8 bits that stand in blocks become 16-bit numbers",
         [](const QuantizedProblem& p) { return p.is_packed(); }),
    rule("rows must start at multiples of 16 bytes: in and out are multiples of 8",
         [](const QuantizedProblem& p) { return p.in % 8 == 0 && p.out % 8 == 0; }),
    rule("numbers are written for more than 256 tokens: fewer are multiplied faster with the codes",
         [](const QuantizedProblem& p) { return p.tokens >= least_tokens; }),
    rule("the numbers may take a 32nd of the device's memory as workspace",
         [](const QuantizedProblem& p, const DeviceTraits& t) {
             return p.products() * number_bytes(p) <= t.memory_bytes / memory_parts;
         }),
    rule("the product's ring leaves room for what the launch in front stages",
         [](const QuantizedProblem& p, const WgmmaConfig& c, const DeviceTraits& t) {
             return geometry(p.dense(), c).shared_bytes() + staged_bytes <= t.max_shared_bytes_per_block;
         }),
});
constexpr auto constraints = joined(own_constraints, rules<Dense, WgmmaConfig>);

double predict(const QuantizedProblem& p, const WgmmaConfig& c, const DeviceTraits& traits) {
    const double written = static_cast<double>(p.products()) * static_cast<double>(number_bytes(p));
    return linear::gemm::predict(p.dense(), c, traits) + rewrite_us(p.weight_bytes(), written, traits);
}

}  // namespace

const Variant dequantize{
    .name = "dequantize",
    .summary = "weights written as 16-bit numbers by a launch in front, then linear's warpgroup tensor cores",
    .source = "quantized_linear/dequantize/kernel.cu",
    .min_arch = {9, 0, true},
    .tunables = tunables,
    .constraints = constraints,
    .kernels = dequantize_kernels,
    .plan = typed<dequantize_plan>,
    // What nobody has measured takes no such workspace: wgmma_w16 is close.
    .fallback = no_fallback,
    .access_elements = typed<dequantize_access_elements>,
    .predict_us = typed<predict>};

}  // namespace hone::quantized_linear
