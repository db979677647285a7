#include "kernel_templates/calibration.h"

#include <algorithm>
#include <cmath>

#include "kernel_templates/family.h"

namespace hone {
namespace {

constexpr double flops_per_cycle = 4096;  // of a multiprocessor

/// Index of the tunable; their number when there is none of that name.
std::size_t index_of(const Variant& variant, std::string_view tunable) {
    const auto found = std::ranges::find(variant.tunables, tunable, &Tunable::name);
    return static_cast<std::size_t>(found - variant.tunables.begin());
}

/// Index of the tunable that this one is read with.
std::optional<std::size_t> partner_of(const Variant& variant, std::size_t tunable) {
    const std::string_view name = variant.tunables[tunable].read_with;
    return name.empty() ? std::nullopt : std::optional(index_of(variant, name));
}

double log_factor(const Coefficient& coefficient,
                  const std::array<double, calibration_knots.size()>& shares) {
    double sum = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) sum += shares[i] * coefficient.per_mille[i];
    return sum / 1000;
}

}  // namespace

std::array<double, calibration_knots.size()> knot_shares(double floor_us) {
    std::array<double, calibration_knots.size()> shares{};
    const double size =
        std::clamp(std::log2(std::max(floor_us, 1e-9)), calibration_knots.front(), calibration_knots.back());
    std::size_t above = 1;
    while (calibration_knots[above] < size) ++above;
    const double step = calibration_knots[above] - calibration_knots[above - 1];
    shares[above] = (size - calibration_knots[above - 1]) / step;
    shares[above - 1] = 1 - shares[above];
    return shares;
}

double floor_us(const Problem& problem, const DeviceTraits& traits) {
    const Work work = problem.family->work(problem);
    const double flops_per_us = flops_per_cycle * 1e-3 * traits.sm_count * traits.sm_clock_khz;
    return std::max(work.bytes / (1e-6 * traits.memory_bytes_per_s), work.flops / flops_per_us);
}

Correction::Correction(const Problem& problem, const Variant& variant, const DeviceTraits& traits) {
    if (problem.family->calibration.empty()) return;
    const auto shares = knot_shares(floor_us(problem, traits));
    for (const Coefficient& coefficient : problem.family->calibration) {
        if (!coefficient.variant.empty() && coefficient.variant != variant.name) continue;
        if (coefficient.tunable.empty()) {
            log_factor_ += log_factor(coefficient, shares);
        } else {
            const std::size_t tunable = index_of(variant, coefficient.tunable);
            terms_.push_back({.tunable = tunable,
                              .value = coefficient.value,
                              .read_with = partner_of(variant, tunable),
                              .given = coefficient.given,
                              .log_factor = log_factor(coefficient, shares)});
        }
    }
}

double Correction::factor(const Config& config) const {
    double sum = log_factor_;
    for (const Term& term : terms_) {
        const bool is_meant = !term.read_with || config[*term.read_with] == term.given;
        if (is_meant && config[term.tunable] == term.value) sum += term.log_factor;
    }
    return std::exp(sum);
}

double Correction::factor(std::size_t tunable, std::int64_t value, std::int64_t given) const {
    for (const Term& term : terms_) {
        const bool is_meant = !term.read_with || term.given == given;
        if (is_meant && term.tunable == tunable && term.value == value) return std::exp(term.log_factor);
    }
    return 1;
}

double predicted_us(const Problem& problem, const Candidate& candidate, const DeviceTraits& traits) {
    const Variant& variant = *candidate.variant;
    return variant.predict_us(problem, candidate.config, traits) *
           Correction(problem, variant, traits).factor(candidate.config);
}

}  // namespace hone
