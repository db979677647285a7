// The 8 likeliest of 128 experts for each of 64 tokens, as Qwen3-30B-A3B routes, in fp32: weights that add up
// to 1, and all pairs of a token and a slot by expert. Weights, starts and rows are checked.
//   build/release/examples/expert_routing
// Exit codes: example.h.
#include <algorithm>
#include <numeric>

#include "example.h"

namespace {

constexpr std::size_t tokens = 64;
constexpr std::size_t experts = 128;
constexpr std::size_t top_k = 8;
constexpr hone::ExpertRouting operation{
    .experts = experts, .top_k = top_k, .max_tokens = 64, .dtype = hone::Dtype::fp32, .renormalize = true};

/// The token's experts, the likeliest first.
std::vector<std::size_t> chosen(const float* logits) {
    std::vector<std::size_t> order(experts);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
    order.resize(top_k);
    return order;
}

void add_weights(examples::Comparison& results, const float* found, const float* logits,
                 const std::vector<std::size_t>& mine) {
    double sum = 0;
    for (const std::size_t expert : mine) sum += std::exp(double{logits[expert]});
    for (std::size_t slot = 0; slot < top_k; ++slot)
        results.add(found[slot], std::exp(double{logits[mine[slot]]}) / sum);
}

/// Of each expert.
using Pairs = std::vector<std::vector<std::int32_t>>;

std::vector<std::int32_t> rows_of(const Pairs& pairs) {
    std::vector<std::int32_t> rows;
    for (const auto& mine : pairs) rows.insert(rows.end(), mine.begin(), mine.end());
    return rows;
}
std::vector<std::int32_t> starts_of(const Pairs& pairs) {
    std::vector<std::int32_t> starts{0};
    for (const auto& mine : pairs) starts.push_back(starts.back() + static_cast<std::int32_t>(mine.size()));
    return starts;
}

int example() {
    hone::Runtime runtime;
    const hone::ExpertRoutingKernel routing = runtime.prepare(operation);

    const auto logits = examples::random_values<float>(tokens * experts, 1, 2);
    const examples::DeviceArray device_logits(logits);
    const examples::DeviceArray<float> weights(tokens * top_k);
    const examples::DeviceArray starts(std::vector<std::int32_t>(experts + 1, -1));
    const examples::DeviceArray rows(std::vector<std::int32_t>(tokens * top_k, -1));
    const auto workspace = examples::workspace(routing.workspace_bytes(tokens));
    const hone::ExpertRoutingArgs args{.logits = device_logits.get(),
                                       .routing_weights = weights.get(),
                                       .starts = starts.get(),
                                       .rows = rows.get(),
                                       .workspace = workspace.get()};
    examples::must_run(runtime, routing.run(nullptr, args, tokens), routing.refusal(args, tokens));

    const auto found = weights.to_host();
    Pairs pairs(experts);
    examples::Comparison results;
    for (std::size_t token = 0; token < tokens; ++token) {
        const std::vector<std::size_t> mine = chosen(&logits[token * experts]);
        add_weights(results, &found[token * top_k], &logits[token * experts], mine);
        for (std::size_t slot = 0; slot < top_k; ++slot)
            pairs[mine[slot]].push_back(static_cast<std::int32_t>(token * top_k + slot));
    }
    examples::print_kernel(runtime.explain(operation, tokens));
    if (starts.to_host() != starts_of(pairs) || rows.to_host() != rows_of(pairs)) {
        std::printf("the pairs are not sorted by expert: WRONG\n");
        return 4;
    }
    return examples::conclude(runtime, results, 1e-5);
}

}  // namespace

int main() { return examples::run(example); }
