// RMSNorm with a residual on real data: prepare once, run, and check every element against a double-precision
// reference.
//   build/release/examples/rmsnorm
// Exit code 3: no usable GPU.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include <hone/hone.h>

#include "device_memory.h"

namespace {

constexpr std::int64_t rows = 300;
constexpr std::int64_t hidden = 4096;
constexpr float epsilon = 1e-5F;
constexpr hone::RmsNorm operation{
    .hidden = hidden, .max_rows = 512, .dtype = hone::Dtype::fp32, .residual = true};

std::vector<float> random_values(std::size_t count, unsigned seed, float mean) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal(mean, 1.0F);
    std::vector<float> values(count);
    for (float& value : values) value = normal(engine);
    return values;
}

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

double relative_error(const std::vector<float>& y, const std::vector<double>& expected) {
    double difference = 0;
    double total = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
        difference += (y[i] - expected[i]) * (y[i] - expected[i]);
        total += expected[i] * expected[i];
    }
    return std::sqrt(difference / total);
}

int run_example() {
    hone::Runtime runtime;
    const hone::RmsNormKernel norm = runtime.prepare(operation);
    runtime.freeze();  // from here on nothing compiles

    const std::vector<float> x = random_values(rows * hidden, 1, 0.0F);
    const std::vector<float> residual = random_values(rows * hidden, 2, 0.0F);
    const std::vector<float> weight = random_values(hidden, 3, 1.0F);
    const examples::DeviceArray device_x(x);
    const examples::DeviceArray device_residual(residual);
    const examples::DeviceArray device_weight(weight);
    const examples::DeviceArray out(x.size());
    const examples::DeviceArray sum(x.size());

    const hone::Status status = norm.run(nullptr,
                                         {.x = device_x.get(),
                                          .residual = device_residual.get(),
                                          .weight = device_weight.get(),
                                          .out = out.get(),
                                          .sum = sum.get(),
                                          .epsilon = epsilon},
                                         rows);
    if (status != hone::Status::ok) {
        std::fprintf(stderr, "run(): %s\n%s\n", std::string(hone::describe(status)).c_str(),
                     runtime.last_launch_error().c_str());
        return 1;
    }
    const double error = relative_error(out.to_host(), reference(x, residual, weight));

    std::printf("%s", to_string(norm.reports().front()).c_str());
    std::printf("%s", hone::to_string(runtime.explain(operation, rows)).c_str());
    std::printf("%lld x %lld on %s: relative error %.2e (allowed 1e-6)\n", static_cast<long long>(rows),
                static_cast<long long>(hidden), runtime.device_name().c_str(), error);
    return error <= 1e-6 ? 0 : 1;
}

}  // namespace

int main() {
    try {
        return run_example();
    } catch (const hone::Error& error) {
        std::fprintf(stderr, "%s: %s\n%s\n", error.where().c_str(), error.what(), error.hint().c_str());
        return error.kind() == hone::ErrorKind::no_gpu ? 3 : 1;
    }
}
