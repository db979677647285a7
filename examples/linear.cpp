// The projection to queries, keys and values of an 8B Llama, for 16 tokens in bf16; 500 results are checked.
//   build/release/examples/linear
// Exit codes: example.h.
#include "example.h"

namespace {

constexpr std::size_t tokens = 16;
constexpr std::size_t in = 4096;
constexpr std::size_t out = 6144;
constexpr hone::Linear operation{.in = in, .out = out, .max_tokens = 512, .bias = true};

int example() {
    hone::Runtime runtime;
    const hone::LinearKernel linear = runtime.prepare(operation);

    const auto x = examples::random_values(tokens * in, 1);
    const auto weight = examples::random_values(out * in, 2, 1 / 64.0F);
    const auto bias = examples::random_values(out, 3);
    const examples::DeviceArray device_x(x);
    const examples::DeviceArray device_weight(weight);
    const examples::DeviceArray device_bias(bias);
    const examples::DeviceArray<examples::Bf16> device_y(tokens * out);
    const auto workspace = examples::workspace(linear.workspace_bytes(tokens));

    const hone::LinearArgs args{.x = device_x.get(),
                                .weight = device_weight.get(),
                                .bias = device_bias.get(),
                                .out = device_y.get(),
                                .workspace = workspace.get()};
    examples::must_run(runtime, linear.run(nullptr, args, tokens), linear.refusal(args, tokens));

    const auto y = device_y.to_host();
    examples::Comparison results;
    for (std::size_t i = 0; i < 500; ++i) {
        const std::size_t token = i % tokens;
        const std::size_t column = i * 7919 % out;
        const double product = examples::dot(&x[token * in], &weight[column * in], in);
        results.add(y[token * out + column], product + static_cast<double>(bias[column]));
    }
    examples::print_kernel(runtime.explain(operation, tokens));
    return examples::conclude(runtime, results, 4e-3);
}

}  // namespace

int main() { return examples::run(example); }
