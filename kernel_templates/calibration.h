// What measurements say of a cost model's errors. A model knows bytes, operations and launches; that one
// value of a tunable does better than they explain is measured, and written down as a factor on the predicted
// time: one number a value of a tunable (and one a variant as a whole) at each of a few sizes, a straight
// line between them. Where another tunable decides what the values mean, as `swapped` does of a tile's rows
// and columns, there is a number for each pair. bench/cost_fit finds the numbers from configs/recorded and
// writes `calibration.h` beside the family that has some; docs/how-we-measure.md says how.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernel_templates/config.h"
#include "kernel_templates/device_traits.h"
#include "kernel_templates/problem.h"

namespace hone {

struct Candidate;
struct Variant;

/// The sizes of problems that coefficients are given at: base-two logarithms of floor_us(), ascending.
inline constexpr std::array<double, 8> calibration_knots{-4, -2, 0, 2, 4, 6, 8, 10};

struct Coefficient {
    std::string_view variant;  ///< empty: of all variants alike
    std::string_view tunable;  ///< empty: of the variant as a whole
    std::int64_t value = 0;
    /// Thousandths of the natural logarithm of a factor on the predicted time, at each knot.
    std::array<std::int16_t, calibration_knots.size()> per_mille{};
    /// Of candidates whose other tunable, the one that this one is read with, has this value
    /// (Tunable::read_with); 0 where there is no such tunable.
    std::int64_t given = 0;
};

/// The shares of the knots in a problem of this size: two neighbours' at most, 1 in all. Beyond the outermost
/// knots they are those of the knot.
[[nodiscard]] std::array<double, calibration_knots.size()> knot_shares(double floor_us);

/// Microseconds that a call must take on the device at least: its bytes over the memory's bandwidth or its
/// operations over 4,096 a cycle and multiprocessor (dense 16-bit products on sm_90), whichever is more.
[[nodiscard]] double floor_us(const Problem&, const DeviceTraits&);

/// The factors of one variant for one problem, worked out once for all of its candidates.
class Correction {
  public:
    Correction(const Problem&, const Variant&, const DeviceTraits&);

    /// On the time that the variant's cost model predicts; 1 where nothing is known.
    [[nodiscard]] double factor(const Config&) const;
    /// On the time of candidates with this value of the tunable with this index, and `given` of the one that
    /// it is read with, if there is one.
    [[nodiscard]] double factor(std::size_t tunable, std::int64_t value, std::int64_t given = 0) const;

  private:
    struct Term {
        std::size_t tunable = 0;
        std::int64_t value = 0;
        std::optional<std::size_t> read_with;
        std::int64_t given = 0;
        double log_factor = 0;
    };
    double log_factor_ = 0;  ///< the variant's
    std::vector<Term> terms_;
};

/// What the candidate's cost model predicts, corrected: microseconds of a call.
[[nodiscard]] double predicted_us(const Problem&, const Candidate&, const DeviceTraits&);

}  // namespace hone
