// Which scale (and zero point) a group of w4a16 gets: the scales that are tried, in order, and the arithmetic
// in steps that leave the same bits on the host and on a GPU. Plain C++ that both include: the quantizer of
// the host (runtime/quantize/) and the kernels of this folder give the search a Group, which knows how to
// compute sums over the group's values there.
//
// Everything is float32, no product joins an addition, and a sum over a group has one order: lane i of 32
// adds the elements i, i + 32, ... of up to 1024, then lanes are added pairwise, i and i + 16, i and i + 8,
// and so on; longer groups are pieces of 1024, whose sums are added one after the other. Elements beyond the
// group count as zeros, which change no sum.
//
// The search works on the values times a power of two that brings the largest magnitude to between 1 and 4,
// so that no square is out of float's range ("unit"); scales are rounded as they will be stored.
#pragma once

namespace hone::quantize_weights {

inline constexpr int lanes = 32;
inline constexpr int piece = 1024;

/// Below it a magnitude counts as zero, in every format.
inline constexpr float smallest_magnitude = 0x1p-100F;
inline constexpr float infinity = __builtin_bit_cast(float, 0x7F800000U);

/// A product that stays one: a GPU's compiler joins products with additions where it may.
inline float product(float a, float b) {
#ifdef __CUDACC__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

/// `value`, or the end of the range that it is beyond; for numbers, not NaN.
inline float clamp(float value, float low, float high) {
#ifdef __CUDACC__
    return fminf(fmaxf(value, low), high);
#else
    const float above = value < low ? low : value;
    return above > high ? high : above;
#endif
}

/// Added and subtracted, rounds magnitudes below 2^22 to whole numbers, ties to even.
inline constexpr float rounder = 0x1.8p23F;

/// The code nearest to a quotient, less the zero point.
inline float nearest(float quotient, float low, float high) {
    return clamp(quotient, low, high) + rounder - rounder;
}

/// Codes less the zero point reach from `low` to `high`.
struct Codes {
    float scale;
    float low;
    float high;
};
inline Codes codes_of(float scale, int zero) {
    return {scale, static_cast<float>(-zero), static_cast<float>(15 - zero)};
}

/// What a value adds to the squared error. `inverse` is 1 / codes.scale.
inline float square_of_rest(float value, float inverse, const Codes& codes) {
    const float rest = value - product(nearest(product(value, inverse), codes.low, codes.high), codes.scale);
    return product(rest, rest);
}

/// 2^exponent, -126 to 127.
inline float power_of_two(int exponent) {
    return __builtin_bit_cast(float, static_cast<unsigned>(exponent + 127) << 23);
}

/// A scale as it is stored. Infinite: its dtype has no such number.
struct Stored {
    unsigned short bits = 0;
    float scale = 0;
};
inline bool is_finite(float value) {
    return (__builtin_bit_cast(unsigned, value) & 0x7FFFFFFFU) < 0x7F800000U;
}

/// A scale worth a trial, in units.
struct Trial {
    float unit;
    int zero;
};

/// The best so far.
struct Choice {
    Stored stored;
    int zero = 8;
    float error = infinity;

    /// Its dtype has no number for the scale that clips nothing; the rest means nothing.
    [[nodiscard]] bool too_large() const { return !is_finite(stored.scale); }
};

/// The values' range, in units.
struct Range {
    float low;
    float high;
    int exponent;  ///< exponent of a unit, a power of two

    /// The range of values from `low` to `high`, one of them at least smallest_magnitude in size.
    static Range of(float low, float high) {
        const float largest = -low > high ? -low : high;
        const int found = static_cast<int>(__builtin_bit_cast(unsigned, largest) >> 23) - 127;
        const int exponent = found < 126 ? found : 126;  // 2^-127 is subnormal
        const float factor = power_of_two(-exponent);
        return {low * factor, high * factor, exponent};
    }
    /// Takes values to units.
    [[nodiscard]] float factor() const { return power_of_two(-exponent); }
    [[nodiscard]] float unit_of(float scale) const { return scale * factor(); }
    [[nodiscard]] float scale_of(float unit) const { return unit * power_of_two(exponent); }
};

/// Parts of the scale that clips nothing, about 2 % apart.
constexpr float part(int index) {
    float found = 1;
    for (int i = 0; i < index; ++i) found *= 0.98F;
    return found;
}
/// Parts worth a trial: the longer the group, the less a single outlier weighs. It costs (1 - c)^2 to clip it
/// to c, and count / 588 c^2 to round the others.
constexpr int part_count(int count) {
    const float wanted = 1 / (1 + static_cast<float>(count) / 400);
    const float least = wanted < 0.02F ? 0.02F : wanted > 0.5F ? 0.5F : wanted;
    int found = 0;
    for (float tried = 1; tried > least; tried *= 0.98F) ++found;
    return found;
}
inline constexpr int most_parts = part_count(1 << 18);

/// Makes a scale the choice when it leaves less; one that is rounded to 0 or infinity is left out.
template <class Group>
inline void try_one(const Group& group, const Range& range, const Trial& trial, Choice& choice) {
    const Stored stored = group.stored(range.scale_of(trial.unit));
    if (stored.scale == 0 || !is_finite(stored.scale)) return;
    const float error = group.error(codes_of(range.unit_of(stored.scale), trial.zero));
    if (error < choice.error) choice = {stored, trial.zero, error};
}

/// Searches one group. A Group has
///   int count() const              values of it
///   float part(int index) const    as above
///   Stored stored(float scale) const
///   float error(Codes) const       sum of square_of_rest() over the group
///   float best_unit(Codes) const   sum of value * code / sum of code * code, with the codes that are
///   nearest;
///                                  0 where all of them are 0
///   void attempt(int trials, trial_of, const Range&, Choice&) const
///       leaves the choice that try_one() would make of trial_of(0) to trial_of(trials - 1), in this order
template <bool zeros, class Group>
class ScaleSearch {
  public:
    ScaleSearch(const Group& group, const Range& range) : group_(group), range_(range) {}

    /// `search` false: the scale that clips nothing.
    Choice run(bool search) {
        zeros ? take_whole_range() : take_larger_side();
        if (choice_.too_large() || !search) return choice_;
        // No scale leaves more than 0, which is what the first may have been rounded to.
        if (choice_.stored.scale != 0)
            choice_.error = group_.error(codes_of(range_.unit_of(choice_.stored.scale), choice_.zero));
        zeros ? search_range() : search_sides();
        if (choice_.stored.scale != 0) refine();
        return choice_;
    }

  private:
    void take(float unit, int zero) {
        choice_.stored = group_.stored(range_.scale_of(unit));
        choice_.zero = zero;
    }

    /// Nothing is clipped: -8 serves the side that reaches further, 7 the other.
    void take_larger_side() {
        const bool is_up = range_.high > -range_.low;
        const float far = (is_up ? range_.high : -range_.low) / 8;
        const float near = (is_up ? -range_.low : range_.high) / 7;
        const float size = far > near ? far : near;
        take(is_up ? -size : size, 8);
    }

    /// The range with 0 in it is 15 steps.
    void take_whole_range() {
        const float step = (most() - least()) / 15;
        take(step, static_cast<int>(nearest(-least() / step, 0, 15)));
    }

    [[nodiscard]] float least() const { return range_.low < 0 ? range_.low : 0; }
    [[nodiscard]] float most() const { return range_.high > 0 ? range_.high : 0; }

    /// Parts of the scale that reaches to code 7, then those that put the largest magnitude on a code; for
    /// both signs.
    void search_sides() {
        const float largest = -range_.low > range_.high ? -range_.low : range_.high;
        const int parts = part_count(group_.count());
        const int of_side = parts + 8;
        group_.attempt(
            2 * of_side,
            [&](int trial) -> Trial {
                const int index = trial % of_side;
                const float size = index < parts ? product(largest, group_.part(index)) / 7
                                                 : largest / static_cast<float>(index - parts + 1);
                return {trial < of_side ? -size : size, 8};
            },
            range_, choice_);
    }

    /// Parts of the scale that takes the whole range, then those that make it a few steps; each with the two
    /// zero points that put the centre of the codes next to that of the values.
    void search_range() {
        const float range = most() - least();
        const float centre = least() + range / 2;
        const int parts = part_count(group_.count());
        group_.attempt(
            2 * (parts + 14),
            [&](int trial) -> Trial {
                const int index = trial / 2;
                const float unit = index < parts ? product(range, group_.part(index)) / 15
                                                 : range / static_cast<float>(index - parts + 1);
                return {unit, zero_of(floor_of(7.5F - centre / unit) + trial % 2)};
            },
            range_, choice_);
    }

    /// Around the choice: finer steps, then the best scale for the codes at hand until nothing changes.
    void refine() {
        const float middle = range_.unit_of(choice_.stored.scale);
        const int zero = choice_.zero;
        group_.attempt(
            zeros ? 51 : 17,
            [&](int trial) -> Trial {
                const int step = trial / 17 == 2 ? 1 : -(trial / 17);
                return {middle * (static_cast<float>(400 + trial % 17 - 8) / 400), zero_of(zero + step)};
            },
            range_, choice_);
        for (float last = infinity; choice_.error < last;) {
            last = choice_.error;
            const Codes codes = codes_of(range_.unit_of(choice_.stored.scale), choice_.zero);
            try_one(group_, range_, {group_.best_unit(codes), choice_.zero}, choice_);
        }
    }

    static int zero_of(int wanted) { return wanted < 0 ? 0 : wanted > 15 ? 15 : wanted; }
    static int floor_of(float value) {
        const int cut = static_cast<int>(value);
        return value < static_cast<float>(cut) ? cut - 1 : cut;
    }

    const Group& group_;
    const Range range_;
    Choice choice_;
};

}  // namespace hone::quantize_weights
