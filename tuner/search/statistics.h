// Order statistics of measured times. No assumption about how times are distributed; the same samples always
// give the same answer. Pure functions.
#pragma once

#include <span>
#include <vector>

#include "cache/records.h"

namespace hone::tuner {

struct Interval {
    double low = 0;
    double high = 0;
};

/// Linear interpolation between order statistics; `share` from 0 to 1. 0 for no samples.
[[nodiscard]] double quantile(std::span<const double> samples, double share);
[[nodiscard]] double median(std::span<const double> samples);
/// The mean without a tenth at either end, of three samples or more at least one. Replays of one kernel may
/// have several levels, of which a median, and nearly as much the mean of a middle half, shows now the one,
/// now the other. 0 for no samples.
[[nodiscard]] double trimmed_mean(std::span<const double> samples);

/// Confidence interval (95 %) of the trimmed mean from the winsorized variance (Tukey and McLaughlin 1963),
/// which asks little of how samples are distributed. The whole range for fewer than six samples.
[[nodiscard]] Interval trimmed_mean_interval(std::span<const double> samples);

/// a[i] / b[i] over the pairs that exist.
[[nodiscard]] std::vector<double> paired_ratios(std::span<const double> a, std::span<const double> b);

/// Median, 10th and 90th percentile, number of samples.
[[nodiscard]] cache::Timing summarize(std::span<const double> us);

}  // namespace hone::tuner
