// A projection of an 8B Llama with weights of 4 bits in groups of 64, for 16 tokens in bf16; 500 results are
// checked against products with the values that the codes stand for.
//   build/release/examples/quantized_linear
// Exit codes: example.h.
#include "quantized_weight.h"

namespace {

constexpr std::size_t tokens = 16;
constexpr std::size_t in = 4096;
constexpr std::size_t out = 6144;
constexpr hone::QuantizedLinear operation{.in = in, .out = out, .max_tokens = 512, .group = 64};

int example() {
    hone::Runtime runtime;
    const hone::QuantizedLinearKernel linear = runtime.prepare(operation);

    const auto x = examples::random_values(tokens * in, 1);
    const examples::QuantizedWeight weight(operation.format, out, in, operation.group, 2);
    const examples::DeviceArray device_x(x);
    const examples::DeviceArray<examples::Bf16> device_y(tokens * out);
    const auto workspace = examples::workspace(linear.workspace_bytes(tokens));

    const hone::QuantizedLinearArgs args{.x = device_x.get(),
                                         .weight = weight.pointers(),
                                         .out = device_y.get(),
                                         .workspace = workspace.get()};
    examples::must_run(runtime, linear.run(nullptr, args, tokens), linear.refusal(args, tokens));

    const auto y = device_y.to_host();
    examples::Comparison results;
    for (std::size_t i = 0; i < 500; ++i) {
        const std::size_t token = i % tokens;
        const std::size_t column = i * 7919 % out;
        results.add(y[token * out + column], examples::dot(&x[token * in], weight.row(column), in));
    }
    examples::print_kernel(runtime.explain(operation, tokens));
    return examples::conclude(runtime, results, 6e-3);
}

}  // namespace

int main() { return examples::run(example); }
