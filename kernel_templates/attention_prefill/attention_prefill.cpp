#include "kernel_templates/attention_prefill/attention_prefill.h"

#include <algorithm>

namespace hone::attention_prefill {

double AttentionProblem::visible_pairs() const {
    const auto queries = static_cast<double>(q_len);
    const auto keys = static_cast<double>(kv_len);
    if (!causal) return queries * keys;
    // Query i sees min(i + 1 + kv_len - q_len, window) keys: a sum of min(x, most) over x up to kv_len.
    const double most = window > 0 ? static_cast<double>(window) : keys;
    const auto sum_to = [most](double last) {
        const double ramp = std::clamp(last, 0.0, most);
        return ramp * (ramp + 1) / 2 + std::max(0.0, last - most) * most;
    };
    return sum_to(keys) - sum_to(keys - queries);
}

AttentionProblem attention_problem(const Problem& problem) {
    constexpr Dtype dtypes[] = {Dtype::fp32, Dtype::fp16, Dtype::bf16};
    return {.dtype = dtypes[problem[0]],
            .causal = problem[1] != 0,
            .window = problem[2],
            .softcap = problem[3] != 0,
            .lse = problem[4] != 0,
            .lengths = static_cast<Lengths>(problem[5]),
            .heads = problem[6],
            .kv_heads = problem[7],
            .head_dim = problem[8],
            .batch = problem[9],
            .q_len = problem[10],
            .kv_len = problem[11]};
}

Launch launch(const char* kernel, Dim3 grid, std::int64_t threads) {
    Launch result;
    result.kernel = kernel;
    result.grid = grid;
    result.block = {static_cast<std::uint32_t>(threads), 1, 1};
    for (int i = 0; i < pointer_count; ++i) result.args[result.arg_count++] = pointer_arg(i);
    for (int i = 0; i < scalar_count; ++i) result.args[result.arg_count++] = scalar_arg(i);
    return result;
}

std::optional<Config> best_of(const Problem& problem, const Variant& variant, std::span<const Config> configs,
                              const DeviceTraits& traits) {
    std::optional<Config> best;
    double best_us = 0;
    for (const Config& config : configs) {
        if (!allowed(problem, {&variant, config}, traits)) continue;
        const double us = variant.predict_us(problem, config, traits);
        if (best && us >= best_us) continue;
        best = config;
        best_us = us;
    }
    return best;
}

}  // namespace hone::attention_prefill
