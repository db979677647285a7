// RMSNorm with a residual on real data: prepare once, run, and check every element against a double-precision
// reference.
//   build/release/examples/rms_norm
// Exit codes: example.h. Exit code 3: no usable GPU.
#include "example.h"

namespace {

constexpr std::int64_t rows = 300;
constexpr std::int64_t hidden = 4096;
constexpr float epsilon = 1e-5F;
constexpr hone::RmsNorm operation{
    .hidden = hidden, .max_rows = 512, .dtype = hone::Dtype::fp32, .residual = true};

/// y = s * rsqrt(mean(s^2) + epsilon) * weight with s = x + residual, in double from the rounded sum on.
std::vector<double> reference(const std::vector<float>& x, const std::vector<float>& residual,
                              const std::vector<float>& weight) {
    std::vector<double> y(x.size());
    for (std::size_t row = 0; row < rows; ++row) {
        double squares = 0;
        for (std::size_t i = row * hidden; i < (row + 1) * hidden; ++i) {
            y[i] = x[i] + residual[i];
            squares += y[i] * y[i];
        }
        const double factor = 1.0 / std::sqrt(squares / hidden + double{epsilon});
        for (std::size_t i = 0; i < hidden; ++i) y[row * hidden + i] *= factor * double{weight[i]};
    }
    return y;
}

int example() {
    hone::Runtime runtime;
    const hone::RmsNormKernel norm = runtime.prepare(operation);
    runtime.freeze();  // from here on nothing compiles

    const auto x = examples::random_values<float>(rows * hidden, 1);
    const auto residual = examples::random_values<float>(rows * hidden, 2);
    const auto weight = examples::random_values<float>(hidden, 3, 0.25F, 1);
    const examples::DeviceArray device_x(x);
    const examples::DeviceArray device_residual(residual);
    const examples::DeviceArray device_weight(weight);
    const examples::DeviceArray<float> out(x.size());
    const examples::DeviceArray<float> sum(x.size());

    const hone::Status status = norm.run(nullptr,
                                         {.x = device_x.get(),
                                          .residual = device_residual.get(),
                                          .weight = device_weight.get(),
                                          .out = out.get(),
                                          .sum = sum.get(),
                                          .epsilon = epsilon},
                                         rows);
    examples::must_run(runtime, status, "");

    const std::vector<float> y = out.to_host();
    const std::vector<double> wanted = reference(x, residual, weight);
    examples::Comparison results;
    for (std::size_t i = 0; i < y.size(); ++i) results.add(y[i], wanted[i]);
    examples::print_kernel(runtime.explain(operation, rows));
    return examples::conclude(runtime, results, 1e-6);
}

}  // namespace

int main() { return examples::run(example); }
