#include "tuner/search/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hone::tuner {
namespace {

constexpr std::size_t least_for_interval = 6;

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

/// Samples at each end that the trimmed mean leaves out: a tenth, of three or more at least one.
std::size_t left_out(std::size_t samples) { return samples < 3 ? 0 : std::max<std::size_t>(1, samples / 10); }

double mean(std::span<const double> samples) {
    return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

/// The 97.5th percentile of Student's t by the first terms of Cornish and Fisher's expansion: within 1.5 %
/// from three degrees of freedom on.
double student_t(double degrees) {
    constexpr double z = 1.959964;
    constexpr double first = (z * z * z + z) / 4;
    constexpr double second = (5 * z * z * z * z * z + 16 * z * z * z + 3 * z) / 96;
    return z + first / degrees + second / (degrees * degrees);
}

}  // namespace

double quantile(std::span<const double> samples, double share) {
    return quantile_of_sorted(sorted(samples), share);
}

double median(std::span<const double> samples) { return quantile(samples, 0.5); }

double trimmed_mean(std::span<const double> samples) {
    if (samples.empty()) return 0;
    const std::vector<double> order = sorted(samples);
    const std::size_t end = left_out(order.size());
    return mean(std::span(order).subspan(end, order.size() - 2 * end));
}

Interval trimmed_mean_interval(std::span<const double> samples) {
    if (samples.empty()) return {};
    std::vector<double> order = sorted(samples);
    if (order.size() < least_for_interval) return {order.front(), order.back()};
    const std::size_t end = left_out(order.size());
    const auto middle = static_cast<double>(order.size() - 2 * end);
    const double center = trimmed_mean(order);
    for (std::size_t i = 0; i < end; ++i) {
        order[i] = order[end];
        order[order.size() - 1 - i] = order[order.size() - 1 - end];
    }
    const double around = mean(order);
    double squares = 0;
    for (const double sample : order) squares += (sample - around) * (sample - around);
    const double half_width = student_t(middle - 1) * std::sqrt(squares / (middle * (middle - 1)));
    return {center - half_width, center + half_width};
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
