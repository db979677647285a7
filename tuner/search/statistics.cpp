#include "tuner/search/statistics.h"

#include <algorithm>
#include <cmath>

namespace hone::tuner {
namespace {

std::vector<double> sorted(std::span<const double> samples) {
    std::vector<double> copy(samples.begin(), samples.end());
    std::ranges::sort(copy);
    return copy;
}

double quantile_of_sorted(const std::vector<double>& samples, double share) {
    if (samples.empty()) return 0;
    const double place = share * static_cast<double>(samples.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, samples.size() - 1);
    return std::lerp(samples[below], samples[above], place - static_cast<double>(below));
}

/// The largest k such that P(Binomial(n, 1/2) < k) <= 2.5 %: ranks k and n + 1 - k enclose the median with 95
/// %.
std::size_t lower_rank(std::size_t n) {
    double probability = std::exp2(-static_cast<double>(n));  // that exactly i samples are below the median
    double below = 0;
    std::size_t rank = 0;
    for (std::size_t i = 0; i < n; ++i) {
        below += probability;
        if (below > 0.025) break;
        rank = i + 1;
        probability *= static_cast<double>(n - i) / static_cast<double>(i + 1);
    }
    return rank;
}

}  // namespace

double quantile(std::span<const double> samples, double share) {
    return quantile_of_sorted(sorted(samples), share);
}

double median(std::span<const double> samples) { return quantile(samples, 0.5); }

Interval median_interval(std::span<const double> samples) {
    if (samples.empty()) return {};
    const std::vector<double> order = sorted(samples);
    const std::size_t rank = std::max<std::size_t>(1, lower_rank(order.size()));
    return {order[rank - 1], order[order.size() - rank]};
}

std::vector<double> paired_ratios(std::span<const double> a, std::span<const double> b) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        if (b[i] > 0) ratios.push_back(a[i] / b[i]);
    }
    return ratios;
}

cache::Timing summarize(std::span<const double> us) {
    const std::vector<double> order = sorted(us);
    return {.median_us = quantile_of_sorted(order, 0.5),
            .p10_us = quantile_of_sorted(order, 0.1),
            .p90_us = quantile_of_sorted(order, 0.9),
            .samples = static_cast<int>(order.size())};
}

}  // namespace hone::tuner
