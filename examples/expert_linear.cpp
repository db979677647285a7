// The first half of a mixture of experts at the sizes of Mixtral 8x7B, cut to 512 columns: silu(x * gate^T) *
// (x * up^T) for 16 tokens, each with 2 of 8 experts, rows of x gathered on the way; every result is checked.
//   build/release/examples/expert_linear
// Exit codes: example.h.
#include <numeric>

#include "example.h"

namespace {

constexpr std::size_t tokens = 16;
constexpr std::size_t experts = 8;
constexpr std::size_t top_k = 2;
constexpr std::size_t hidden = 4096;
constexpr std::size_t intermediate = 512;
constexpr hone::ExpertLinear operation{.in = hidden,
                                       .out = intermediate,
                                       .experts = experts,
                                       .top_k = top_k,
                                       .max_tokens = 16,
                                       .activation = hone::Activation::silu,
                                       .gated = true,
                                       .gather = true};

/// The experts of a token: made up here, an ExpertRouting's elsewhere.
std::size_t expert_of(std::size_t token, std::size_t slot) { return (token * 3 + slot * 5) % experts; }

struct Routing {
    std::vector<std::int32_t> starts;
    std::vector<std::int32_t> rows;
};
Routing by_expert() {
    Routing routing;
    for (std::size_t expert = 0; expert < experts; ++expert) {
        routing.starts.push_back(static_cast<std::int32_t>(routing.rows.size()));
        for (std::size_t pair = 0; pair < tokens * top_k; ++pair) {
            if (expert_of(pair / top_k, pair % top_k) == expert)
                routing.rows.push_back(static_cast<std::int32_t>(pair));
        }
    }
    routing.starts.push_back(static_cast<std::int32_t>(routing.rows.size()));
    return routing;
}

int example() {
    hone::Runtime runtime;
    const hone::ExpertLinearKernel layer = runtime.prepare(operation);

    const Routing routing = by_expert();
    const auto x = examples::random_values(tokens * hidden, 1);
    const auto gate = examples::random_values(experts * intermediate * hidden, 2, 1.0F / 64);
    const auto up = examples::random_values(experts * intermediate * hidden, 3, 1.0F / 64);
    const examples::DeviceArray device_x(x);
    const examples::DeviceArray device_gate(gate);
    const examples::DeviceArray device_up(up);
    const examples::DeviceArray starts(routing.starts);
    const examples::DeviceArray rows(routing.rows);
    const examples::DeviceArray<examples::Bf16> out(tokens * top_k * intermediate);
    const auto workspace = examples::workspace(layer.workspace_bytes(tokens));
    const hone::ExpertLinearArgs args{.x = device_x.get(),
                                      .starts = starts.get(),
                                      .rows = rows.get(),
                                      .weight = device_gate.get(),
                                      .up = device_up.get(),
                                      .out = out.get(),
                                      .workspace = workspace.get()};
    examples::must_run(runtime, layer.run(nullptr, args, tokens), layer.refusal(args, tokens));

    const auto y = out.to_host();
    examples::Comparison results;
    for (std::size_t i = 0; i < y.size(); ++i) {
        const auto pair = static_cast<std::size_t>(routing.rows[i / intermediate]);
        const std::size_t row = expert_of(pair / top_k, pair % top_k) * intermediate + i % intermediate;
        const auto* mine = &x[pair / top_k * hidden];
        const double first = examples::dot(mine, &gate[row * hidden], hidden);
        const double second = examples::dot(mine, &up[row * hidden], hidden);
        results.add(static_cast<double>(y[i]), first / (1 + std::exp(-first)) * second);
    }
    examples::print_kernel(runtime.explain(operation, tokens));
    return examples::conclude(runtime, results, 5e-3);
}

}  // namespace

int main() { return examples::run(example); }
