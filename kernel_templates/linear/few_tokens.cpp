#include "kernel_templates/linear/few_tokens.h"

#include <algorithm>
#include <cmath>

#include "kernel_templates/linear/normalize.h"

namespace hone::linear::few_tokens {

std::int64_t threads(const Config& config) { return 32 * config[k_warps] * config[row_warps]; }

std::int64_t groups(const LinearProblem& p, const Config& config) {
    return ceil_div(p.tokens, config[block_tokens]);
}

std::int64_t steps(const LinearProblem& p, const Config& config) {
    return ceil_div(p.out, config[rows] * config[row_warps]);
}

std::int64_t partial_bytes(const LinearProblem& p, const Config& config) {
    return 4 * (config[blocks_per_sm] != 0 ? 2 : 1) * config[row_warps] * config[k_warps] * p.products() *
           config[block_tokens] * (config[rows] + 4);
}

bool holds_tokens(const LinearProblem& p, const Config& config, const Tunable& tokens) {
    const std::span<const std::int64_t> values = tokens.values.span();
    const auto least = std::ranges::lower_bound(values, p.tokens);
    return config[block_tokens] == (least == values.end() ? values.back() : *least);
}

Plan plan(const char* kernel, const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    const std::int64_t group_count = groups(p, config);
    std::int64_t blocks = steps(p, config);
    if (config[blocks_per_sm] != 0) {
        const std::int64_t resident = traits.sm_count * config[blocks_per_sm] / group_count;
        blocks = std::min(blocks, std::max<std::int64_t>(resident, 1));
    }
    Plan plan{.launch_count = 1};
    plan.launches[0] =
        launch(kernel, {static_cast<std::uint32_t>(blocks * group_count), 1, 1}, threads(config));
    plan.launches[0].programmatic = config[programmatic] != 0;
    return config[fold_norm] != 0 ? plan : normalize_first(p, plan);
}

double predict_us(const Problem& problem, const Config& config, const Stream& stream,
                  const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    const double block_threads = static_cast<double>(threads(config));
    const Plan launches = plan("", problem, config, traits);
    const double blocks = launches.launches[static_cast<std::size_t>(launches.launch_count - 1)].grid.x;
    const double fit = std::floor(
        std::min({65536 / (static_cast<double>(std::max<std::int64_t>(stream.registers, 32)) * block_threads),
                  static_cast<double>(traits.shared_bytes_per_sm) /
                      static_cast<double>(partial_bytes(p, config) + 1024),
                  traits.max_threads_per_sm / block_threads}));
    const double resident = std::clamp(blocks / traits.sm_count, 1.0, std::max(fit, 1.0));
    const double busy = std::min(1.0, blocks / traits.sm_count);

    const double token_groups = static_cast<double>(groups(p, config));
    const double weights = p.weight_bytes() * token_groups;  // through level 2
    const double sms = traits.sm_count * busy;
    const double cycles_per_us = 0.886e-3 * traits.sm_clock_khz;
    const double memory_us = (p.weight_bytes() + p.x_bytes() + p.out_bytes()) /
                             (stream.bandwidth * 1e-6 * traits.memory_bytes_per_s);
    const double in_flight = resident * block_threads * stream.loads * 16;
    const double draw_us = weights / sms / in_flight * stream.latency_us;
    const double issue_us = weights / 16 * stream.instructions / (sms * 128 * cycles_per_us);
    const double level1_us = weights * (1 + stream.x_bytes) / (sms * 128 * cycles_per_us);
    const double body_us = std::pow(
        std::pow(memory_us, 4) + std::pow(draw_us, 4) + std::pow(issue_us, 4) + std::pow(level1_us, 4), 0.25);
    // Where memory is the limit, candidates differ by the order in which they ask for it: few rows at a time
    // are best, and blocks that come and go.
    const double disorder =
        0.012 * std::max(0.0, std::log2(stream.loads / (4.0 * static_cast<double>(p.products())))) +
        0.006 * std::log2(16.0 / static_cast<double>(config[k_warps])) +
        (config[blocks_per_sm] != 0 ? 0.004 : 0.0) + (config[load_hint] == 3 ? 0.002 : 0.0);
    const double norm_us = config[fold_norm] != 0 ? 0.3 : normalize_us(p, traits);
    return body_us * (1 + disorder) + norm_us + stream.rest_us + (config[programmatic] != 0 ? 1.4 : 1.8);
}

}  // namespace hone::linear::few_tokens
