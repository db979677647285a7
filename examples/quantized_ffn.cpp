// The feed-forward network of a 1B Llama with weights of 8 bits, for 16 tokens in bf16; 100 results of one
// token are checked against products with the values that the codes stand for.
//   build/release/examples/quantized_ffn
// Exit codes: example.h.
#include "quantized_weight.h"

namespace {

constexpr std::size_t tokens = 16;
constexpr std::size_t hidden = 2048;
constexpr std::size_t intermediate = 8192;
constexpr hone::QuantizedFfn operation{
    .hidden = hidden, .intermediate = intermediate, .max_tokens = 512, .format = hone::QuantFormat::w8a16};
using examples::dot;

int example() {
    hone::Runtime runtime;
    const hone::QuantizedFfnKernel ffn = runtime.prepare(operation);

    const auto x = examples::random_values(tokens * hidden, 1);
    const examples::QuantizedWeight gate(operation.format, intermediate, hidden, 0, 2);
    const examples::QuantizedWeight up(operation.format, intermediate, hidden, 0, 3);
    const examples::QuantizedWeight down(operation.format, hidden, intermediate, 0, 4);
    const examples::DeviceArray device_x(x);
    const examples::DeviceArray<examples::Bf16> device_y(tokens * hidden);
    const auto workspace = examples::workspace(ffn.workspace_bytes(tokens));

    const hone::QuantizedFfnArgs args{.x = device_x.get(),
                                      .gate = gate.pointers(),
                                      .up = up.pointers(),
                                      .down = down.pointers(),
                                      .out = device_y.get(),
                                      .workspace = workspace.get()};
    examples::must_run(runtime, ffn.run(nullptr, args, tokens), ffn.refusal(args, tokens));

    std::vector<double> between(intermediate);  // silu(x * gate^T) * (x * up^T) of the first token
    for (std::size_t i = 0; i < intermediate; ++i) {
        const double g = dot(x.data(), gate.row(i), hidden);
        between[i] = g / (1 + std::exp(-g)) * dot(x.data(), up.row(i), hidden);
    }
    const auto y = device_y.to_host();
    examples::Comparison results;
    for (std::size_t i = 0; i < 100; ++i) results.add(y[i], dot(between.data(), down.row(i), intermediate));
    examples::print_kernel(runtime.explain(operation, tokens));
    return examples::conclude(runtime, results, 1e-2);
}

}  // namespace

int main() { return examples::run(example); }
