// The second half of a mixture of experts at the sizes of Qwen3-30B-A3B, cut to 16 experts, with weights of 4
// bits in groups of 64: for 16 tokens, each with 4 of the experts, the weighted sum of their results; 500 are
// checked against products with the values that the codes stand for.
//   build/release/examples/quantized_expert_linear
// Exit codes: example.h.
#include <numeric>

#include "quantized_weight.h"

namespace {

constexpr std::size_t tokens = 16;
constexpr std::size_t experts = 16;
constexpr std::size_t top_k = 4;
constexpr std::size_t intermediate = 768;
constexpr std::size_t hidden = 2048;
constexpr hone::QuantizedExpertLinear operation{.in = intermediate,
                                                .out = hidden,
                                                .experts = experts,
                                                .top_k = top_k,
                                                .max_tokens = 16,
                                                .group = 64,
                                                .combine = true};

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
    const hone::QuantizedExpertLinearKernel layer = runtime.prepare(operation);

    const Routing routing = by_expert();
    const auto x = examples::random_values(tokens * top_k * intermediate, 1);  // by place
    const std::vector<float> shares(tokens * top_k, 1.0F / top_k);
    // As many rows an expert as whole blocks of codes have, so all experts are one weight below another.
    const examples::QuantizedWeight weight(operation.format, experts * hidden, intermediate, operation.group,
                                           2);
    const examples::DeviceArray device_x(x);
    const examples::DeviceArray device_shares(shares);
    const examples::DeviceArray starts(routing.starts);
    const examples::DeviceArray rows(routing.rows);
    const examples::DeviceArray<examples::Bf16> out(tokens * hidden);
    const auto workspace = examples::workspace(layer.workspace_bytes(tokens));
    const hone::QuantizedExpertLinearArgs args{.x = device_x.get(),
                                               .starts = starts.get(),
                                               .rows = rows.get(),
                                               .routing_weights = device_shares.get(),
                                               .weight = weight.pointers(),
                                               .out = out.get(),
                                               .workspace = workspace.get()};
    examples::must_run(runtime, layer.run(nullptr, args, tokens), layer.refusal(args, tokens));

    std::vector<std::size_t> place_of(tokens * top_k);
    for (std::size_t place = 0; place < place_of.size(); ++place)
        place_of[static_cast<std::size_t>(routing.rows[place])] = place;
    const auto y = out.to_host();
    examples::Comparison results;
    for (std::size_t i = 0; i < 500; ++i) {
        const std::size_t token = i % tokens;
        const std::size_t column = i * 7919 % hidden;
        double sum = 0;
        for (std::size_t slot = 0; slot < top_k; ++slot) {
            const auto* mine = &x[place_of[token * top_k + slot] * intermediate];
            const float* its = weight.row(expert_of(token, slot) * hidden + column);
            sum += examples::dot(mine, its, intermediate) / top_k;
        }
        results.add(static_cast<double>(y[token * hidden + column]), sum);
    }
    examples::print_kernel(runtime.explain(operation, tokens));
    return examples::conclude(runtime, results, 6e-3);
}

}  // namespace

int main() { return examples::run(example); }
