#include "bench/cost_fit/cost_fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <set>
#include <tuple>

#include "kernel_templates/catalog.h"
#include "tuner/search/statistics.h"

namespace hone::cost_fit {
namespace {

constexpr double power_limited_us = 20;
constexpr double nearness = 1.4;       // candidates beyond, measured and modelled, do not matter
constexpr double weight_scale = 0.1;   // the weight falls to 1 / e at 10 % over the best
constexpr double least_weight = 0.02;  // of those that the model takes for near ones
constexpr double most_weight = 120;    // of a problem, in candidates: large sweeps do not drown small ones
constexpr double most_error = 1;  // on the logarithm: a candidate that went wrong is no coefficient's fault
constexpr double ridge = 20;
constexpr double level_nearness = 1.05;  // whose predictions are to be right as microseconds, too
constexpr double level_ridge = 1;
constexpr std::size_t enough_recorded = 20;  // problems
constexpr int knots = static_cast<int>(calibration_knots.size());

using Shares = std::array<double, calibration_knots.size()>;

/// Variant, tunable (empty: the variant as a whole), its value, and that of the tunable that it is read with.
using Term = std::tuple<const Variant*, std::string_view, std::int64_t, std::int64_t>;

/// The value of the tunable that the one with this index is read with; 0 where there is none.
std::int64_t given_of(const Candidate& candidate, std::size_t index) {
    const auto& tunables = candidate.variant->tunables;
    const auto found = std::ranges::find(tunables, tunables[index].read_with, &Tunable::name);
    return found == tunables.end() ? 0 : candidate.config[static_cast<std::size_t>(found - tunables.begin())];
}

/// The terms of a family's measured candidates; the column of a term's first knot is its number times
/// `knots`.
class Terms {
  public:
    explicit Terms(std::span<const Case> cases) {
        for (const Case& one : cases) {
            for (const Measured& measured : one.measured) {
                for (const Term& term : of(measured.candidate)) numbers_.try_emplace(term, 0);
            }
        }
        int next = 0;
        for (auto& [term, number] : numbers_) number = next++;
    }

    [[nodiscard]] static std::vector<Term> of(const Candidate& candidate) {
        std::vector<Term> terms{{candidate.variant, "", 0, 0}};
        for (std::size_t i = 0; i < candidate.variant->tunables.size(); ++i)
            terms.emplace_back(candidate.variant, candidate.variant->tunables[i].name, candidate.config[i],
                               given_of(candidate, i));
        return terms;
    }
    [[nodiscard]] int column(const Term& term) const { return knots * numbers_.at(term); }
    [[nodiscard]] int columns() const { return knots * static_cast<int>(numbers_.size()); }
    [[nodiscard]] const std::map<Term, int>& numbers() const { return numbers_; }

  private:
    std::map<Term, int> numbers_;
};

/// Sums of a least-squares problem, which add up over cases.
struct Normal {
    Eigen::MatrixXd matrix;
    Eigen::VectorXd right;

    explicit Normal(int columns)
        : matrix(Eigen::MatrixXd::Zero(columns, columns)), right(Eigen::VectorXd::Zero(columns)) {}
};

double best_us(const Case& one) { return std::ranges::min(one.measured, {}, &Measured::us).us; }

/// A candidate's features: columns and what stands there.
std::vector<std::pair<int, double>> features(const Terms& terms, const Candidate& candidate,
                                             const Shares& shares) {
    std::vector<std::pair<int, double>> all;
    for (const Term& term : Terms::of(candidate)) {
        for (int k = 0; k < knots; ++k) {
            const double share = shares[static_cast<std::size_t>(k)];
            if (share != 0) all.emplace_back(terms.column(term) + k, share);
        }
    }
    return all;
}

struct Row {
    std::vector<std::pair<int, double>> features;
    double error = 0;  ///< logarithm of measured over modelled time
    double weight = 0;
};

std::vector<Row> rows_of(const Case& one, const Terms& terms) {
    const double best = best_us(one);
    const double fastest_model = std::ranges::min(one.measured, {}, &Measured::model_us).model_us;
    const Shares shares = knot_shares(floor_us(one.problem, one.traits));
    std::vector<Row> rows;
    double sum = 0;
    for (const Measured& measured : one.measured) {
        if (std::min(measured.us / best, measured.model_us / fastest_model) >= nearness) continue;
        const double weight = std::exp(-std::log(measured.us / best) / weight_scale) + least_weight;
        rows.push_back(
            {features(terms, measured.candidate, shares), std::log(measured.us / measured.model_us), weight});
        sum += weight;
    }
    const double scale = std::min(static_cast<double>(rows.size()), most_weight) / sum;
    for (Row& row : rows) row.weight *= scale;
    return rows;
}

/// Adds a case. Only candidates of one case are compared: the mean over them is taken from features and
/// errors, so that no coefficient explains why a whole problem is slower than its model.
void add(const Case& one, const Terms& terms, Normal& normal) {
    std::vector<Row> rows = rows_of(one, terms);
    std::map<int, double> mean;
    double total = 0;
    double mean_error = 0;
    for (const Row& row : rows) {
        total += row.weight;
        mean_error += row.weight * row.error;
        for (const auto& [column, share] : row.features) mean[column] += row.weight * share;
    }
    mean_error /= total;
    for (const Row& row : rows) {
        const double error = std::clamp(row.error - mean_error, -most_error, most_error);
        for (const auto& [i, share] : row.features) {
            normal.right[i] += row.weight * share * error;
            for (const auto& [j, other] : row.features) normal.matrix(i, j) += row.weight * share * other;
        }
        for (const auto& [i, sum] : mean) normal.right[i] -= row.weight * sum / total * error;
    }
    for (const auto& [i, a] : mean) {
        for (const auto& [j, b] : mean) normal.matrix(i, j) -= a * b / total;
    }
}

Normal sums_of(std::span<const Case> cases, const Terms& terms) {
    Normal normal(terms.columns());
    for (const Case& one : cases) {
        if (!one.measured.empty()) add(one, terms, normal);
    }
    return normal;
}

/// The knots of a term share what is common to all sizes: a priori its coefficients are c + d_k, with c and
/// all d_k normal, independent and of one variance. That makes penalty * (I - 1 1^T / (knots + 1)) of their
/// precision.
Eigen::VectorXd solve(Normal normal, double penalty) {
    const double shared = penalty / (knots + 1);
    for (Eigen::Index first = 0; first < normal.matrix.rows(); first += knots) {
        normal.matrix.block(first, first, knots, knots).array() -= shared;
        normal.matrix.block(first, first, knots, knots).diagonal().array() += penalty;
    }
    return normal.matrix.llt().solve(normal.right);
}

Coefficient coefficient_of(const Eigen::VectorXd& solution, int first) {
    Coefficient coefficient;
    for (int k = 0; k < knots; ++k) {
        coefficient.per_mille[static_cast<std::size_t>(k)] =
            static_cast<std::int16_t>(std::lround(1000 * solution[first + k]));
    }
    return coefficient;
}

std::vector<Coefficient> coefficients_of(const Eigen::VectorXd& solution, const Terms& terms) {
    std::vector<Coefficient> all;
    for (const auto& [term, number] : terms.numbers()) {
        const auto& [variant, tunable, value, given] = term;
        Coefficient coefficient = coefficient_of(solution, knots * number);
        coefficient.variant = variant->name;
        coefficient.tunable = tunable;
        coefficient.value = value;
        coefficient.given = given;
        const bool says_nothing =
            std::ranges::all_of(coefficient.per_mille, [](std::int16_t x) { return x == 0; });
        if (!says_nothing) all.push_back(coefficient);
    }
    return all;
}

/// Products whose successor starts late have, with few early weights (3), the coefficient of all (2) until a
/// sweep has them: what the two differ by is the model's to say. Other values that nobody has measured have
/// none: a hint of norms as good as its neighbour's would take half of their lists.
void add_few_early_weights(std::vector<Coefficient>& coefficients) {
    const auto of_value = [&](std::string_view variant, std::int64_t value) {
        return std::ranges::find_if(coefficients, [&](const Coefficient& coefficient) {
            return coefficient.variant == variant && coefficient.tunable == "programmatic" &&
                   coefficient.value == value;
        });
    };
    for (const std::string_view variant : {"wgmma", "wgmma_w8"}) {
        const auto all = of_value(variant, 2);
        if (all == coefficients.end() || of_value(variant, 3) != coefficients.end()) continue;
        Coefficient few = *all;
        few.value = 3;
        coefficients.push_back(few);
    }
}

/// In the order in which the family declares variants, tunables and values.
void sort_as_declared(std::vector<Coefficient>& coefficients, const Family& family) {
    const auto place = [&](const Coefficient& coefficient) {
        const auto variant = std::ranges::find(family.variants, coefficient.variant, &Variant::name);
        const auto tunable = std::ranges::find((*variant)->tunables, coefficient.tunable, &Tunable::name);
        const bool whole = coefficient.tunable.empty();
        return std::tuple(variant - family.variants.begin(),
                          whole ? -1 : tunable - (*variant)->tunables.begin(), coefficient.given,
                          coefficient.value);
    };
    std::ranges::sort(coefficients, {}, place);
}

/// A copy of the family that has these coefficients, to predict with.
struct Corrected {
    std::vector<Coefficient> coefficients;
    Family family;

    Corrected(const Family& original, std::vector<Coefficient> fitted)
        : coefficients(std::move(fitted)), family(original) {
        family.calibration = coefficients;
    }
};

/// Corrected times of a case's candidates.
std::vector<double> corrected_us(const Case& one, const Family& corrected) {
    Problem problem = one.problem;
    problem.family = &corrected;
    std::map<const Variant*, Correction> corrections;
    std::vector<double> us;
    for (const Measured& measured : one.measured) {
        const Variant* variant = measured.candidate.variant;
        const auto found = corrections.try_emplace(variant, problem, *variant, one.traits).first;
        us.push_back(measured.model_us * found->second.factor(measured.candidate.config));
    }
    return us;
}

/// What the best of the first `count` by corrected prediction costs over the best of all.
Judged judged(const Case& one, const Family& corrected, std::size_t count) {
    std::vector<std::pair<double, const Measured*>> ranked;  // by prediction
    const std::vector<double> predicted = corrected_us(one, corrected);
    for (std::size_t i = 0; i < predicted.size(); ++i) ranked.emplace_back(predicted[i], &one.measured[i]);
    std::ranges::stable_sort(ranked, {}, &std::pair<double, const Measured*>::first);
    const auto us = [](const auto& entry) { return entry.second->us; };
    const auto best = std::ranges::min_element(ranked, {}, us);
    const auto found = std::ranges::min_element(ranked | std::views::take(count), {}, us);
    return {.judge = &one,
            .loss = us(*found) / us(*best) - 1,
            .rank = static_cast<std::size_t>(best - ranked.begin()),
            .best = *best->second,
            .first = *ranked.front().second};
}
double loss_of(const Case& one, const Family& corrected, std::size_t count) {
    return judged(one, corrected, count).loss;
}

/// What brings the fast candidates' corrected predictions to their measured times: the other coefficients
/// only say how candidates of one problem compare.
Coefficient level_of(std::span<const Case> cases, const Family& corrected) {
    Normal normal(knots);
    for (const Case& one : cases) {
        const std::vector<double> predicted = corrected_us(one, corrected);
        std::vector<double> errors;
        for (std::size_t i = 0; i < predicted.size(); ++i) {
            const double us = one.measured[i].us;
            if (us < level_nearness * best_us(one)) errors.push_back(std::log(us / predicted[i]));
        }
        const Shares shares = knot_shares(floor_us(one.problem, one.traits));
        const Eigen::Map<const Eigen::VectorXd> share(shares.data(), knots);
        normal.matrix += share * share.transpose();
        normal.right += share * tuner::median(errors);
    }
    return coefficient_of(solve(normal, level_ridge), 0);
}

Loss summary_of(const std::vector<double>& losses) {
    if (losses.empty()) return {};
    double logs = 0;
    for (const double loss : losses) logs += std::log1p(loss);
    return {.problems = static_cast<int>(losses.size()),
            .mean = std::expm1(logs / static_cast<double>(losses.size())),
            .p95 = tuner::quantile(losses, 0.95),
            .worst = std::ranges::max(losses)};
}

double time_of(std::span<const double> samples) {
    const double middle = tuner::median(samples);
    return middle > power_limited_us ? tuner::quantile(samples, 0.1) : middle;
}

/// Those right candidates that this build would allow: tunables may have gone since the sweep.
std::vector<Measured> measured_of(const Problem& problem, const tuner::RecordedProblem& recorded,
                                  const DeviceTraits& traits) {
    std::vector<Measured> all;
    for (const auto& [text, candidate] : recorded.candidates) {
        if (candidate.verdict.status != cache::TrialStatus::ok || candidate.us.empty()) continue;
        const auto parsed = parse_candidate(*problem.family, text);
        if (!parsed || !allowed(problem, *parsed, traits)) continue;
        all.push_back(
            {*parsed, time_of(candidate.us), parsed->variant->predict_us(problem, parsed->config, traits)});
    }
    return all;
}

}  // namespace

std::vector<Case> cases_of(std::span<const tuner::Recording> recordings, const Family& family) {
    std::vector<Case> cases;
    for (const tuner::Recording& recording : recordings) {
        for (const auto& [text, recorded] : recording.problems) {
            const auto problem = parse_problem(text);
            if (!problem || problem->family != &family) continue;
            const DeviceTraits& traits = recording.device.traits;
            Case one{*problem, traits, measured_of(*problem, recorded, traits)};
            if (!one.measured.empty()) cases.push_back(std::move(one));
        }
    }
    return cases;
}

std::vector<Case> training_cases(std::span<const tuner::Recording> recordings,
                                 std::span<const cache::Trial> races, const Family& family) {
    std::vector<Case> all = cases_of(recordings, family);
    if (all.size() >= enough_recorded) return all;
    std::map<std::pair<std::string, std::string>, Case> cases;  // by GPU and problem
    for (const cache::Trial& race : races) {
        if (race.key.family != family.name || race.provenance != cache::Provenance::measured) continue;
        const auto device = std::ranges::find_if(recordings, [&](const tuner::Recording& recording) {
            return recording.device.gpu == race.key.gpu;
        });
        if (device == recordings.end()) continue;
        const std::string text =
            fmt::format("{} {} {}", family.name, race.key.static_fields, race.key.dynamic_fields);
        const auto problem = parse_problem(text);
        if (!problem) continue;
        const DeviceTraits& traits = device->device.traits;
        const auto candidate = parse_candidate(family, race.candidate);
        if (!candidate || !allowed(*problem, *candidate, traits)) continue;
        if (race.template_hash != template_hash(*candidate->variant)) continue;  // of another kernel
        Case& one = cases.try_emplace({race.key.gpu.name, text}, Case{*problem, traits, {}}).first->second;
        const double model_us = candidate->variant->predict_us(*problem, candidate->config, traits);
        one.measured.push_back({*candidate, race.timing.median_us, model_us});
    }
    for (auto& [_, one] : cases) {
        if (one.measured.size() > 1) all.push_back(std::move(one));
    }
    return all;
}

std::vector<Coefficient> fit(std::span<const Case> cases) {
    if (cases.empty()) return {};
    const Family& family = *cases.front().problem.family;
    const Terms terms(cases);
    std::vector<Coefficient> coefficients = coefficients_of(solve(sums_of(cases, terms), ridge), terms);
    add_few_early_weights(coefficients);
    sort_as_declared(coefficients, family);
    const Corrected relative(family, coefficients);
    coefficients.insert(coefficients.begin(), level_of(cases, relative.family));
    return coefficients;
}

std::string judges_of(std::span<const Case> cases, std::size_t count) {
    std::set<std::string> statics;
    std::map<std::string, int> by_gpu;
    int all = 0;
    for (const Case& one : cases) {
        if (!one.judges(count)) continue;
        ++all;
        ++by_gpu[one.traits.name];
        statics.insert(static_text(one.problem));
    }
    std::string text = fmt::format("{} problems of {} static ones", all, statics.size());
    for (const auto& [gpu, problems] : by_gpu) text += fmt::format(", {} on {}", problems, gpu);
    return text;
}

Loss loss_of_model(std::span<const Case> cases, std::size_t count) {
    std::vector<double> losses;
    for (const Case& one : cases) {
        if (!one.judges(count)) continue;
        const Corrected uncorrected(*one.problem.family, {});
        losses.push_back(loss_of(one, uncorrected.family, count));
    }
    return summary_of(losses);
}

std::map<std::string, std::vector<Coefficient>> fit_left_out(std::span<const Case> cases, std::size_t count) {
    std::map<std::string, std::vector<Case>> by_static;
    for (const Case& one : cases) by_static[static_text(one.problem)].push_back(one);
    const Terms terms(cases);
    const Normal all = sums_of(cases, terms);
    std::map<std::string, std::vector<Coefficient>> fits;
    for (const auto& [name, group] : by_static) {
        if (std::ranges::none_of(group, [&](const Case& one) { return one.judges(count); })) continue;
        const Normal own = sums_of(group, terms);
        Normal others = all;
        others.matrix -= own.matrix;
        others.right -= own.right;
        fits.emplace(name, coefficients_of(solve(others, ridge), terms));
    }
    return fits;
}

std::vector<Judged> judged_left_out(std::span<const Case> cases, std::size_t count) {
    const std::map<std::string, std::vector<Coefficient>> fits = fit_left_out(cases, count);
    std::vector<Judged> all;
    for (const Case& one : cases) {
        if (!one.judges(count)) continue;
        const Corrected corrected(*one.problem.family, fits.at(static_text(one.problem)));
        all.push_back(judged(one, corrected.family, count));
    }
    return all;
}

Loss loss_left_out(std::span<const Case> cases, std::size_t count) {
    std::vector<double> losses;
    for (const Judged& one : judged_left_out(cases, count)) losses.push_back(one.loss);
    return summary_of(losses);
}

std::string source_of(std::span<const Coefficient> coefficients, std::string_view room) {
    std::string text = fmt::format(
        "// What measurements add to the cost models (kernel_templates/calibration.h): thousandths of the\n"
        "// logarithm of a factor, at floors of 1/16, 1/4, 1, 4, 16, 64, 256 and 1024 us. Written by\n"
        "// bench/cost_fit; fitted anew rather than edited.\n"
        "#pragma once\n\n#include \"kernel_templates/calibration.h\"\n\nnamespace hone::{} {{\n\n"
        "// clang-format off\ninline constexpr Coefficient calibration[] = {{\n",
        room);
    for (const Coefficient& coefficient : coefficients) {
        text += fmt::format("    {{\"{}\", \"{}\", {}, {{{{{}}}}}{}}},\n", coefficient.variant,
                            coefficient.tunable, coefficient.value, fmt::join(coefficient.per_mille, ", "),
                            coefficient.given == 0 ? "" : fmt::format(", {}", coefficient.given));
    }
    return text + fmt::format("}};\n// clang-format on\n\n}}  // namespace hone::{}\n", room);
}

}  // namespace hone::cost_fit
