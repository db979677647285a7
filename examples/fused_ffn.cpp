// The feed-forward network of an 8B Llama for 16 tokens in bf16, with its norm in front and its residual
// behind: out = x + ffn(norm(x)) is one call. 100 results of one token are checked.
//   build/release/examples/fused_ffn
// Exit codes: example.h.
#include "example.h"

namespace {

constexpr std::size_t tokens = 16;
constexpr std::size_t hidden = 4096;
constexpr std::size_t intermediate = 14336;
constexpr hone::FusedFfn operation{
    .hidden = hidden, .intermediate = intermediate, .max_tokens = 512, .residual = true, .norm = true};
using Values = std::vector<examples::Bf16>;

/// silu(norm(x) * gate^T) * (norm(x) * up^T) of the first token.
std::vector<double> between(const Values& x, const Values& norm_weight, const Values& gate,
                            const Values& up) {
    const double factor = 1 / std::sqrt(examples::dot(x.data(), x.data(), hidden) / hidden + 1e-5);
    std::vector<double> normed(hidden);
    for (std::size_t i = 0; i < hidden; ++i)
        normed[i] = static_cast<double>(x[i]) * factor * static_cast<double>(norm_weight[i]);
    std::vector<double> y(intermediate);
    for (std::size_t i = 0; i < intermediate; ++i) {
        const double g = examples::dot(normed.data(), &gate[i * hidden], hidden);
        y[i] = g / (1 + std::exp(-g)) * examples::dot(normed.data(), &up[i * hidden], hidden);
    }
    return y;
}

int example() {
    hone::Runtime runtime;
    const hone::FusedFfnKernel ffn = runtime.prepare(operation);

    const Values x = examples::random_values(tokens * hidden, 1);
    const Values norm_weight = examples::random_values(hidden, 2, 0.25F, 1);
    const Values gate = examples::random_values(intermediate * hidden, 3, 1 / 64.0F);
    const Values up = examples::random_values(intermediate * hidden, 4, 1 / 64.0F);
    const Values down = examples::random_values(hidden * intermediate, 5, 1 / 64.0F);
    const examples::DeviceArray device_x(x);
    const examples::DeviceArray device_norm_weight(norm_weight);
    const examples::DeviceArray device_gate(gate);
    const examples::DeviceArray device_up(up);
    const examples::DeviceArray device_down(down);
    const examples::DeviceArray<examples::Bf16> device_y(tokens * hidden);
    const auto workspace = examples::workspace(ffn.workspace_bytes(tokens));

    const hone::FusedFfnArgs args{.x = device_x.get(),
                                  .gate = device_gate.get(),
                                  .up = device_up.get(),
                                  .down = device_down.get(),
                                  .residual = device_x.get(),
                                  .out = device_y.get(),
                                  .workspace = workspace.get(),
                                  .norm_weight = device_norm_weight.get()};
    examples::must_run(runtime, ffn.run(nullptr, args, tokens), ffn.refusal(args, tokens));

    const Values y = device_y.to_host();
    const std::vector<double> product = between(x, norm_weight, gate, up);
    examples::Comparison results;
    for (std::size_t i = 0; i < 100; ++i) {
        const double second = examples::dot(product.data(), &down[i * intermediate], intermediate);
        results.add(y[i], static_cast<double>(x[i]) + second);
    }
    examples::print_kernel(runtime.explain(operation, tokens));
    return examples::conclude(runtime, results, 1e-2);
}

}  // namespace

int main() { return examples::run(example); }
