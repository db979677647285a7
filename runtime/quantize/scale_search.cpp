#include "runtime/quantize/scale_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/quantize/group_error.h"
#include "runtime/quantize/small_floats.h"

namespace hone::runtime {
namespace {

/// Tries scales on one group. Works on the values times a power of two that brings the largest to between 1
/// and 4, so that no square is out of float's range; scales are rounded as they will be stored.
class ScaleSearch {
  public:
    ScaleSearch(const float* values, std::int64_t count, const GroupRule& rule, float* room)
        : values_(room), count_(count), rule_(rule) {
        low_ = *std::min_element(values, values + count);
        high_ = *std::max_element(values, values + count);
        exponent_ = std::min(std::ilogb(std::max(-low_, high_)), 126);  // 2^-127 is subnormal
        const float factor = std::ldexp(1.0F, -exponent_);
        for (std::int64_t i = 0; i < count; ++i) room[i] = values[i] * factor;
        padded_ = (count + error_lanes - 1) / error_lanes * error_lanes;
        std::fill(room + count, room + padded_, 0.0F);  // zeros leave no error
        low_ *= factor;
        high_ *= factor;
    }

    GroupScale run() {
        rule_.zeros ? take_whole_range() : take_larger_side();
        if (best_.too_large || !rule_.search) return best_;
        // No scale leaves more than 0, which is what the first may have been rounded to.
        best_error_ = best_.scale == 0 ? std::numeric_limits<double>::infinity()
                                       : error_of(unit_scale(best_), best_.zero);
        rule_.zeros ? search_range() : search_sides();
        return best_;
    }

  private:
    struct Rounded {
        std::uint16_t bits;
        float scale;
    };

    /// As stored, of a scale for the values as they are here.
    [[nodiscard]] Rounded rounded(double unit) const {
        const auto scale = static_cast<float>(std::ldexp(unit, exponent_));
        if (rule_.scale_dtype == Dtype::bf16) {
            const std::uint16_t bits = encode_bf16(scale);
            return {bits, decode_bf16(bits)};
        }
        if (std::fabs(scale) >= 65520.0F) return {0x7C00, std::numeric_limits<float>::infinity()};
        const auto bits = static_cast<std::uint16_t>(Half::encode(scale));
        return {bits, Half::decode(bits)};
    }
    [[nodiscard]] float unit_scale(const GroupScale& choice) const {
        return std::ldexp(choice.scale, -exponent_);
    }

    void take(const Rounded& scale, int zero) {
        best_ = {scale.bits, scale.scale, zero, !std::isfinite(scale.scale)};
    }

    /// Nothing is clipped: -8 serves the side that reaches further, 7 the other.
    void take_larger_side() {
        const float far = std::max(-low_, high_);
        const float near = std::min(-low_, high_);
        const float size = std::max(far / 8, near / 7);
        take(rounded(high_ > -low_ ? -size : size), 8);
    }

    /// The range with 0 in it is 15 steps.
    void take_whole_range() {
        const float low = std::min(low_, 0.0F);
        const float step = (std::max(high_, 0.0F) - low) / 15;
        take(rounded(step), std::clamp(static_cast<int>(std::lround(-low / step)), 0, 15));
    }

    static Codes codes_of(float unit, int zero) {
        return {unit, static_cast<float>(-zero), static_cast<float>(15 - zero)};
    }

    [[nodiscard]] double error_of(float unit, int zero) const {
        constexpr std::int64_t piece = 1024;  // float sums of so few are good to six digits
        double sum = 0;
        for (std::int64_t begin = 0; begin < padded_; begin += piece)
            sum += squared_error(values_ + begin, std::min(piece, padded_ - begin), codes_of(unit, zero));
        return sum;
    }

    /// Takes the scale, rounded, when it leaves less than the best so far.
    void attempt(double unit, int zero) {
        const Rounded scale = rounded(unit);
        if (scale.scale == 0 || !std::isfinite(scale.scale)) return;
        const double error = error_of(std::ldexp(scale.scale, -exponent_), zero);
        if (error >= best_error_) return;
        best_error_ = error;
        take(scale, zero);
    }

    /// Smallest part of the scale that clips nothing worth a trial: the longer the group, the less a single
    /// outlier weighs. It costs (1 - c)^2 to clip it to c, and count / 588 c^2 to round the others.
    [[nodiscard]] double least_part() const {
        return std::clamp(1 / (1 + static_cast<double>(count_) / 400), 0.02, 0.5);
    }
    static constexpr double coarse = 0.98;

    void search_sides() {
        const double most = std::max(-low_, high_);
        for (const double side : {-1.0, 1.0}) {
            for (double part = 1; part > least_part(); part *= coarse) attempt(side * part * most / 7, 8);
            for (int code = 1; code <= 8; ++code) attempt(side * most / code, 8);
        }
        refine({0});
    }

    void search_range() {
        const double low = std::min(low_, 0.0F);
        const double range = std::max(high_, 0.0F) - low;
        const double centre = low + range / 2;
        for (double part = 1; part > least_part(); part *= coarse) attempt_zeros(part * range / 15, centre);
        for (int steps = 1; steps < 15; ++steps) attempt_zeros(range / steps, centre);
        refine({0, -1, 1});
    }
    /// The two zero points that put the centre of the codes next to that of the values.
    void attempt_zeros(double unit, double centre) {
        const int zero = static_cast<int>(std::floor(7.5 - centre / unit));
        for (const int next : {0, 1}) attempt(unit, std::clamp(zero + next, 0, 15));
    }

    /// Around the best: finer steps, then the best scale for the codes at hand until nothing changes.
    void refine(std::initializer_list<int> zero_steps) {
        if (best_.scale == 0) return;
        const double middle = unit_scale(best_);
        const int zero = best_.zero;
        for (const int step : zero_steps) {
            for (int fine = -8; fine <= 8; ++fine)
                attempt(middle * (1 + 0.0025 * fine), std::clamp(zero + step, 0, 15));
        }
        for (double last = -1; best_error_ != last;) {
            last = best_error_;
            attempt(best_scale_for(values_, count_, codes_of(unit_scale(best_), best_.zero)), best_.zero);
        }
    }

    const float* values_;
    std::int64_t count_;
    std::int64_t padded_ = 0;
    GroupRule rule_;
    float low_ = 0;
    float high_ = 0;
    int exponent_ = 0;
    GroupScale best_;
    double best_error_ = 0;
};

}  // namespace

GroupScale choose_scale(const float* values, std::int64_t count, const GroupRule& rule, float* room) {
    const bool nothing = std::all_of(values, values + count,
                                     [](float value) { return std::fabs(value) < smallest_magnitude; });
    return nothing ? GroupScale{} : ScaleSearch(values, count, rule, room).run();
}

void encode_w4(const float* values, std::int64_t count, const GroupScale& scale, std::uint8_t* codes) {
    if (scale.scale == 0) {
        std::fill(codes, codes + count, static_cast<std::uint8_t>(scale.zero));
        return;
    }
    const auto low = static_cast<float>(-scale.zero);
    const auto high = static_cast<float>(15 - scale.zero);
    for (std::int64_t i = 0; i < count; ++i) {
        const float code = nearest(values[i] / scale.scale, low, high);
        codes[i] = static_cast<std::uint8_t>(static_cast<int>(code) + scale.zero);
    }
}

}  // namespace hone::runtime
