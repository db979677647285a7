// LayerNorm with a bias, rows of 4096 in bf16; every element is checked.
//   build/release/examples/layer_norm
// Exit codes: example.h.
#include "example.h"

namespace {

constexpr std::int64_t rows = 300;
constexpr std::int64_t hidden = 4096;
constexpr hone::LayerNorm operation{.hidden = hidden, .max_rows = 512};
using Values = std::vector<examples::Bf16>;

void compare(examples::Comparison& results, const examples::Bf16* y, const examples::Bf16* x,
             const Values& weight, const Values& bias) {
    double mean = 0;
    double variance = 0;
    for (std::size_t i = 0; i < hidden; ++i) mean += static_cast<double>(x[i]) / hidden;
    for (std::size_t i = 0; i < hidden; ++i)
        variance += std::pow(static_cast<double>(x[i]) - mean, 2) / hidden;
    const double factor = 1 / std::sqrt(variance + 1e-5);
    for (std::size_t i = 0; i < hidden; ++i) {
        const double centred = static_cast<double>(x[i]) - mean;
        results.add(y[i], centred * factor * static_cast<double>(weight[i]) + static_cast<double>(bias[i]));
    }
}

int example() {
    hone::Runtime runtime;
    const hone::LayerNormKernel norm = runtime.prepare(operation);

    const Values x = examples::random_values(rows * hidden, 1);
    const Values weight = examples::random_values(hidden, 2, 0.25F, 1);
    const Values bias = examples::random_values(hidden, 3);
    const examples::DeviceArray device_x(x);
    const examples::DeviceArray device_weight(weight);
    const examples::DeviceArray device_bias(bias);
    const examples::DeviceArray<examples::Bf16> out(x.size());

    const hone::LayerNormArgs args{.x = device_x.get(),
                                   .weight = device_weight.get(),
                                   .bias = device_bias.get(),
                                   .out = out.get(),
                                   .epsilon = 1e-5F};
    examples::must_run(runtime, norm.run(nullptr, args, rows), norm.refusal(args, rows));

    const Values y = out.to_host();
    examples::Comparison results;
    for (std::size_t row = 0; row < rows; ++row)
        compare(results, &y[row * hidden], &x[row * hidden], weight, bias);
    examples::print_kernel(runtime.explain(operation, rows));
    return examples::conclude(runtime, results, 4e-3);
}

}  // namespace

int main() { return examples::run(example); }
