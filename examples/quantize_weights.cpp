// The weight of a linear layer of an 8B Llama as codes of 4 bits, quantized on the GPU: every code and scale
// has to be the very one that quantize() makes on the CPU.
//   build/release/examples/quantize_weights
// Exit codes: example.h.
#include <span>

#include "example.h"

namespace {

constexpr std::size_t in = 4096;
constexpr std::size_t out = 1024;
constexpr hone::QuantizeWeights operation{.in = in, .max_out = out, .group = 64, .search = false};

int example() {
    hone::Runtime runtime;
    const auto weight = examples::random_values(out * in, 1, 1 / 64.0F);
    const hone::QuantizedWeight wanted = hone::quantize(
        std::as_bytes(std::span(weight)), hone::Dtype::bf16,
        {.format = hone::QuantFormat::w4a16, .out = out, .in = in, .group = 64}, {.search = false});

    const examples::DeviceArray device_weight(weight);
    const examples::DeviceArray<std::uint8_t> codes(wanted.codes.size());
    const examples::DeviceArray<std::uint8_t> scales(wanted.scales.size());
    const auto workspace = examples::workspace(hone::quantize_on_device_workspace(runtime, operation, out));
    hone::quantize_on_device(runtime, operation,
                             {.weight = device_weight.get(),
                              .codes = codes.get(),
                              .scales = scales.get(),
                              .workspace = workspace.get()},
                             out, nullptr);

    examples::Comparison results;
    const auto found_codes = codes.to_host();
    const auto found_scales = scales.to_host();
    for (std::size_t i = 0; i < found_codes.size(); ++i) results.add(found_codes[i], wanted.codes[i]);
    for (std::size_t i = 0; i < found_scales.size(); ++i) results.add(found_scales[i], wanted.scales[i]);
    std::printf("quantize_weights: %zu x %zu in groups of 64, relative error of the weight %.3f\n", out, in,
                wanted.loss.relative_l2);
    return examples::conclude(runtime, results, 0);
}

}  // namespace

int main() { return examples::run(example); }
