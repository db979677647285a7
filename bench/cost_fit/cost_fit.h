// Fits what kernel_templates/calibration.h describes to recorded sweeps, and says what it is worth: ridge
// regression (Hoerl and Kennard, 1970) of the logarithm of measured over modelled time on the values of the
// tunables, at each knot of size.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "kernel_templates/family.h"
#include "tuner/measure/recorded.h"

namespace hone::cost_fit {

struct Measured {
    Candidate candidate;
    double us = 0;
    double model_us = 0;  ///< what the variant's cost model says, without a correction
};

/// One recorded problem of one GPU.
struct Case {
    Problem problem;
    DeviceTraits traits;
    std::vector<Measured> measured;  ///< right candidates that this build has

    /// Whether enough of its space was measured to judge an order's first `count` by; the others only train.
    [[nodiscard]] bool judges(std::size_t count) const { return measured.size() >= 3 * count; }
};

/// What the best of the first few predictions costs over the best of all, as fractions.
struct Loss {
    int problems = 0;
    double mean = 0;  ///< geometric
    double p95 = 0;
    double worst = 0;
};

/// The cases of a family in recordings. A time is the median of all samples, above 20 us their first tenth:
/// long calls lower the clock, and not all alike.
[[nodiscard]] std::vector<Case> cases_of(std::span<const tuner::Recording> recordings, const Family& family);

/// Coefficients for every variant that was measured; all zero ones are left out.
[[nodiscard]] std::vector<Coefficient> fit(std::span<const Case> cases);

/// By static problem with a case that can judge `count` predictions: coefficients of a fit that has seen no
/// case of it, on any GPU.
[[nodiscard]] std::map<std::string, std::vector<Coefficient>> fit_left_out(std::span<const Case> cases,
                                                                           std::size_t count);

/// What the first `count` predictions lose, over the cases that can judge them.
[[nodiscard]] Loss loss_of_model(std::span<const Case> cases, std::size_t count);
/// The same, each static problem's order corrected as fit_left_out() says.
[[nodiscard]] Loss loss_left_out(std::span<const Case> cases, std::size_t count);

/// The folder below kernel_templates/ that has the family's `calibration.h`, and its namespace below hone::.
[[nodiscard]] std::string_view room_of(const Family& family);
/// The text of `calibration.h`.
[[nodiscard]] std::string source_of(std::span<const Coefficient> coefficients, const Family& family);

}  // namespace hone::cost_fit
