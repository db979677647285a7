// Gradients of an RMSNorm for a batch of 300 tokens in bf16: dx of a few rows and dweight of a few columns
// are checked.
//   build/release/examples/rms_norm_backward
// Exit codes: example.h.
#include "example.h"

namespace {

constexpr std::size_t rows = 300;
constexpr std::size_t hidden = 4096;
constexpr std::size_t checked = 5;
constexpr hone::RmsNormBackward operation{.hidden = hidden, .max_rows = 512};
using Values = std::vector<examples::Bf16>;

double factor_of(const examples::Bf16* x) {
    return 1 / std::sqrt(examples::dot(x, x, hidden) / hidden + 1e-5);
}

void compare_dx(examples::Comparison& results, const examples::Bf16* dx, const examples::Bf16* dy,
                const examples::Bf16* x, const Values& weight) {
    const double r = factor_of(x);
    std::vector<double> g(hidden);
    for (std::size_t i = 0; i < hidden; ++i)
        g[i] = static_cast<double>(dy[i]) * static_cast<double>(weight[i]);
    const double mean = examples::dot(g.data(), x, hidden) / hidden;
    for (std::size_t i = 0; i < hidden; ++i)
        results.add(dx[i], r * (g[i] - static_cast<double>(x[i]) * r * r * mean));
}

void compare_dweight(examples::Comparison& results, const Values& dweight, const Values& dy,
                     const Values& x) {
    std::vector<double> wanted(checked);
    for (std::size_t at = 0; at < rows * hidden; at += hidden) {
        const double r = factor_of(&x[at]);
        for (std::size_t i = 0; i < checked; ++i)
            wanted[i] += static_cast<double>(dy[at + i]) * static_cast<double>(x[at + i]) * r;
    }
    for (std::size_t i = 0; i < checked; ++i) results.add(dweight[i], wanted[i]);
}

int example() {
    hone::Runtime runtime;
    const hone::RmsNormBackwardKernel backward = runtime.prepare(operation);

    const Values dy = examples::random_values(rows * hidden, 1);
    const Values x = examples::random_values(rows * hidden, 2);
    const Values weight = examples::random_values(hidden, 3, 0.25F, 1);
    const examples::DeviceArray device_dy(dy);
    const examples::DeviceArray device_x(x);
    const examples::DeviceArray device_weight(weight);
    const examples::DeviceArray<examples::Bf16> dx(x.size());
    const examples::DeviceArray<examples::Bf16> dweight(hidden);
    const auto workspace = examples::workspace(backward.workspace_bytes(rows));

    const hone::RmsNormBackwardArgs args{.dy = device_dy.get(),
                                         .x = device_x.get(),
                                         .weight = device_weight.get(),
                                         .dx = dx.get(),
                                         .dweight = dweight.get(),
                                         .workspace = workspace.get()};
    examples::must_run(runtime, backward.run(nullptr, args, rows), backward.refusal(args, rows));

    const Values found = dx.to_host();
    examples::Comparison results;
    for (std::size_t at = 0; at < checked * hidden; at += hidden)
        compare_dx(results, &found[at], &dy[at], &x[at], weight);
    compare_dweight(results, dweight.to_host(), dy, x);
    examples::print_kernel(runtime.explain(operation, rows));
    return examples::conclude(runtime, results, 4e-3);
}

}  // namespace

int main() { return examples::run(example); }
