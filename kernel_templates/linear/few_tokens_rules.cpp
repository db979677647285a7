#include "kernel_templates/linear/few_tokens_rules.h"

#include <cmath>

#include "kernel_templates/kit/clock.h"
#include "kernel_templates/linear/normalize_rank.h"

namespace hone::linear::few_tokens {

std::int64_t partial_bytes(const LinearProblem& p, const FewTokensConfig& c) {
    const std::int64_t buffers = c.blocks_per_sm != 0 ? 2 : 1;
    return 4 * buffers * c.row_warps * c.k_warps * p.products() * c.tokens * (c.rows + 4);
}

bool holds_tokens(const LinearProblem& p, const FewTokensConfig& c, const Tunable& tokens) {
    const std::span<const std::int64_t> values = tokens.values.span();
    const auto least = std::ranges::lower_bound(values, p.tokens);
    return c.tokens == (least == values.end() ? values.back() : *least);
}

namespace {

/// Blocks that a multiprocessor holds at a time, of those that come to it.
double resident_blocks(const LinearProblem& p, const FewTokensConfig& c, const Stream& stream, double blocks,
                       const DeviceTraits& traits) {
    const double threads = static_cast<double>(c.threads());
    const double registers = static_cast<double>(std::max<std::int64_t>(stream.registers, 32));
    const double shared = static_cast<double>(partial_bytes(p, c) + 1024);
    const double fit = std::floor(
        std::min({65536 / (registers * threads), static_cast<double>(traits.shared_bytes_per_sm) / shared,
                  traits.max_threads_per_sm / threads}));
    return std::clamp(blocks / traits.sm_count, 1.0, std::max(fit, 1.0));
}

/// Where memory is the limit, candidates differ by the order in which they ask for it: few rows at a time
/// are best, and blocks that come and go.
double disorder(const LinearProblem& p, const FewTokensConfig& c, const Stream& stream) {
    return 0.012 * std::max(0.0, std::log2(stream.loads / (4.0 * static_cast<double>(p.products())))) +
           0.006 * std::log2(16.0 / static_cast<double>(c.k_warps)) + (c.blocks_per_sm != 0 ? 0.004 : 0.0) +
           (c.load_hint == 3 ? 0.002 : 0.0);
}

}  // namespace

double predict_us(const LinearProblem& p, const FewTokensConfig& c, const Stream& stream,
                  const DeviceTraits& traits) {
    const double launched = static_cast<double>(blocks(p, c, traits));
    const double resident = resident_blocks(p, c, stream, launched, traits);
    const double busy = std::min(1.0, launched / traits.sm_count);

    const double token_groups = static_cast<double>(groups(p, c));
    const double weights = p.weight_bytes() * token_groups;  // through level 2
    const double sms = traits.sm_count * busy;
    const double cycles_per_us = busy_cycles_per_us(traits);
    const double memory_us = (p.weight_bytes() + p.x_bytes() + p.out_bytes()) /
                             (stream.bandwidth * 1e-6 * traits.memory_bytes_per_s);
    const double in_flight = resident * static_cast<double>(c.threads()) * stream.loads * 16;
    const double draw_us = weights / sms / in_flight * stream.latency_us;
    const double issue_us = weights / 16 * stream.instructions / (sms * 128 * cycles_per_us);
    const double level1_us = weights * (1 + stream.x_bytes) / (sms * 128 * cycles_per_us);
    const double body_us = std::pow(
        std::pow(memory_us, 4) + std::pow(draw_us, 4) + std::pow(issue_us, 4) + std::pow(level1_us, 4), 0.25);
    const double norm_us = c.fold_norm != 0 ? 0.3 : normalize_us(p, traits);
    return body_us * (1 + disorder(p, c, stream)) + norm_us + stream.rest_us +
           (c.programmatic != 0 ? 1.4 : 1.8);
}

}  // namespace hone::linear::few_tokens
