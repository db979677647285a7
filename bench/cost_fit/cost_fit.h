// Fits what kernel_templates/calibration.h describes to recorded sweeps, and says what it is worth: ridge
// regression (Hoerl and Kennard, 1970) of the logarithm of measured over modelled time on the values of the
// tunables, at each knot of size.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "cache/records.h"
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

/// How a case that can judge `count` predictions comes out.
struct Judged {
    const Case* judge = nullptr;
    double loss = 0;       ///< a fraction
    std::size_t rank = 0;  ///< of the best, by prediction
    Measured best;
    Measured first;  ///< by prediction
};

/// The cases of a family in recordings. A time is the median of all samples, above 20 us their first tenth:
/// long calls lower the clock, and not all alike.
[[nodiscard]] std::vector<Case> cases_of(std::span<const tuner::Recording> recordings, const Family& family);

/// What a family is fitted to: its cases in recordings, and where these are few, the races that ship, too:
/// winners and their contenders, of GPUs that have a recording. Those train and cannot judge: a race has few
/// candidates, all of them near the best.
[[nodiscard]] std::vector<Case> training_cases(std::span<const tuner::Recording> recordings,
                                               std::span<const cache::Trial> races, const Family& family);

/// Coefficients for every variant that was measured; all zero ones are left out.
[[nodiscard]] std::vector<Coefficient> fit(std::span<const Case> cases);

/// By static problem with a case that can judge `count` predictions: coefficients of a fit that has seen no
/// case of it, on any GPU.
[[nodiscard]] std::map<std::string, std::vector<Coefficient>> fit_left_out(std::span<const Case> cases,
                                                                           std::size_t count);

/// What a family's figure rests on: of its cases that can judge `count` predictions how many there are, of
/// how many static problems, and on which GPU.
[[nodiscard]] std::string judges_of(std::span<const Case> cases, std::size_t count);

/// What the first `count` predictions lose, over the cases that can judge them.
[[nodiscard]] Loss loss_of_model(std::span<const Case> cases, std::size_t count);
/// The same case by case, each static problem's order corrected as fit_left_out() says; and all in one.
[[nodiscard]] std::vector<Judged> judged_left_out(std::span<const Case> cases, std::size_t count);
[[nodiscard]] Loss loss_left_out(std::span<const Case> cases, std::size_t count);

/// The text of the `calibration.h` in this folder below kernel_templates/, which is the namespace below
/// hone::.
[[nodiscard]] std::string source_of(std::span<const Coefficient> coefficients, std::string_view room);

}  // namespace hone::cost_fit
