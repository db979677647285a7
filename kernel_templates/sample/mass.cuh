// What a token's probability is to this family: its mass, a whole number that the host and every GPU compute
// to the same bits, so that the same numbers lead to the same token wherever they are computed. Plain C++:
// kernels and the host's tests include it alike.
//
// mass = 2^31 * 2^((logit - largest) * log2(e) / temperature), with the power's mantissa rounded to multiples
// of 2^-17 and the product cut to a whole number. It is 2^31 for the largest logit, and 0 below 2^-31 of it.
// Sums of masses have no order. As a float, which it is exactly, the mantissa's upper 6 bits and the exponent
// are the mass's bin, its next 11 bits the place within: two histograms find any threshold exactly.
#pragma once

namespace hone::sample {

inline constexpr float log2_e = 0x1.715476p0F;
/// The mass of the largest logit, as a power of two.
inline constexpr int mass_bits = 31;
/// A row with a lower temperature takes its largest logit.
inline constexpr float least_temperature = 1e-5F;

inline constexpr int group_bins = 64;
inline constexpr int groups = 32;
inline constexpr int bins = groups * group_bins;

// Additions and products that stay what they are: a GPU's compiler joins them where it may.
inline float sum_of(float a, float b) {
#ifdef __CUDACC__
    return __fadd_rn(a, b);
#else
    return a + b;
#endif
}
inline float fused(float a, float b, float c) {
#ifdef __CUDACC__
    return __fmaf_rn(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
}
inline float quotient_of(float a, float b) {
#ifdef __CUDACC__
    return __fdiv_rn(a, b);
#else
    return a / b;
#endif
}
/// The other one of NaN and a number.
inline float larger_of(float a, float b) {
#ifdef __CUDACC__
    return fmaxf(a, b);
#else
    return a > b ? a : b;
#endif
}

/// The least exponent that is looked at: masses are 0 from there on.
inline constexpr float lowest_exponent = -31.45F;

/// What all masses of a row have in common.
struct Scaling {
    float largest;  ///< finite
    float factor;   ///< log2(e) / temperature
    float lowest;   ///< the distance from the largest logit at which masses are 0

    static Scaling of(float largest, float temperature) {
        const float most = temperature < 1e10F ? temperature : 1e10F;
        return {largest, quotient_of(log2_e, most), quotient_of(lowest_exponent * most, log2_e)};
    }
};

/// From the largest logit; that of no mass for NaN and minus infinity.
inline float distance_of(float logit, const Scaling& scaling) {
    return larger_of(sum_of(logit, -scaling.largest), scaling.lowest);
}

/// 2^x is made of a whole power and a polynomial on [-1/2, 1/2], interpolated at Chebyshev's points, with a
/// relative error of 2^-22.
inline unsigned mass_of_distance(float distance, const Scaling& scaling) {
    constexpr float whole = 0x1.8p23F;  // added, leaves a number's nearest integer in its low bits
    const float shifted = fused(distance, scaling.factor, whole);
    const float f = fused(distance, scaling.factor, -sum_of(shifted, -whole));
    float p = fused(0x1.5ec866p-10F, f, 0x1.3cbf60p-7F);
    p = fused(p, f, 0x1.c6afeep-5F);
    p = fused(p, f, 0x1.ebfa4cp-3F);
    p = fused(p, f, 0x1.62e430p-1F);
    constexpr float coarse = 0x1.8p6F;  // a float of this size has multiples of 2^-17
    p = fused(p, f, 1.0F + coarse);
    const unsigned significand = __builtin_bit_cast(unsigned, p) - __builtin_bit_cast(unsigned, coarse);
    const unsigned shift = __builtin_bit_cast(unsigned, whole) - __builtin_bit_cast(unsigned, shifted);
    return significand << (mass_bits - 17) >> shift;
}

inline unsigned mass_of(float logit, const Scaling& scaling) {
    return mass_of_distance(distance_of(logit, scaling), scaling);
}

/// The least mass that is at least `part`, 0 to 1, of the largest logit's.
inline unsigned mass_from(float part) {
    const float exact = part * 0x1p31F;
    const auto found = static_cast<unsigned>(exact);
    return static_cast<float>(found) < exact ? found + 1 : found;
}

/// Where a mass above 0 stands in the histograms: bins rise with it.
struct Bin {
    static constexpr unsigned first = 127U << 6;  ///< the bin of mass 1

    static unsigned bits(unsigned mass) { return __builtin_bit_cast(unsigned, static_cast<float>(mass)); }
    static unsigned of(unsigned bits) { return (bits >> 17) - first; }
    static unsigned rest(unsigned bits) { return bits >> 6 & (bins - 1); }
    /// The mass of a place.
    static unsigned mass(unsigned bin, unsigned rest) {
        return static_cast<unsigned>(__builtin_bit_cast(float, (bin + first) << 17 | rest << 6));
    }
};

/// The sum of masses of one exponent, given the sum of their significands of 18 bits.
inline unsigned long long mass_of_sum(unsigned long long significands, unsigned bin) {
    const int shift = static_cast<int>(bin / group_bins) - (groups - 1) + mass_bits - 17;
    return shift >= 0 ? significands << shift : significands >> -shift;
}

inline unsigned high_product(unsigned a, unsigned b) {
    return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
inline unsigned long long high_product(unsigned long long a, unsigned long long b) {
#ifdef __CUDACC__
    return __umul64hi(a, b);
#else
    __extension__ using Wide = unsigned __int128;
    return static_cast<unsigned long long>(static_cast<Wide>(a) * b >> 64);
#endif
}

/// 64 random bits for a seed and a counter: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random
/// numbers: as easy as 1, 2, 3; 2011), the first two words of block `counter` under the key `seed`.
inline unsigned long long random_bits(unsigned long long seed, unsigned long long counter) {
    unsigned key[2] = {static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32)};
    unsigned word[4] = {static_cast<unsigned>(counter), static_cast<unsigned>(counter >> 32), 0, 0};
    for (int round = 0; round < 10; ++round) {
        const unsigned high[2] = {high_product(0xD2511F53U, word[0]), high_product(0xCD9E8D57U, word[2])};
        const unsigned low[2] = {0xD2511F53U * word[0], 0xCD9E8D57U * word[2]};
        word[0] = high[1] ^ word[1] ^ key[0];
        word[1] = low[1];
        word[2] = high[0] ^ word[3] ^ key[1];
        word[3] = low[0];
        key[0] += 0x9E3779B9U;
        key[1] += 0xBB67AE85U;
    }
    return static_cast<unsigned long long>(word[1]) << 32 | word[0];
}

/// The least whole mass that is at least `part` of `total`, and at least 1. Parts are taken in steps of
/// 2^-32.
inline unsigned long long part_of(unsigned long long total, float part) {
    const float sure = larger_of(part, 0.0F);
    const auto steps = static_cast<unsigned long long>(sure * 0x1p32F);
    const unsigned long long left = total << 12;  // total is below 2^52
    const unsigned long long right = steps << 20;
    const unsigned long long found = high_product(left, right) + (left * right != 0 ? 1 : 0);
    return found == 0 ? 1 : found;
}

}  // namespace hone::sample
