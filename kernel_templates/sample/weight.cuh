// What a token's probability is to this family: its weight, a float that the host and every GPU compute to
// the same bits, so that the same numbers lead to the same token wherever they are computed. Plain C++:
// kernels and the host's tests include it alike.
//
// weight = 2^((logit - largest) * log2(e) / temperature), rounded twice: the mantissa to 17 bits, then the
// weight to a multiple of 2^-31. It is 1 for the largest logit and 0 below about 2^-32. Times 2^31 it is a
// whole number, its mass, so sums of masses have no order. The mantissa's upper 6 bits and the exponent are
// the weight's bin, its lower 11 bits the place within: two histograms find any threshold exactly.
#pragma once

namespace hone::sample {

inline constexpr float log2_e = 0x1.715476p0F;
inline constexpr float ln_2 = 0x1.62e430p-1F;
/// The mass of weight 1, as a power of two.
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
inline float product_of(float a, float b) {
#ifdef __CUDACC__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}
inline float fused(float a, float b, float c) {
#ifdef __CUDACC__
    return __fmaf_rn(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
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

/// What all weights of a row have in common.
struct Scaling {
    float largest;  ///< finite
    float factor;   ///< log2(e) / temperature

    static Scaling of(float largest, float temperature) {
#ifdef __CUDACC__
        return {largest, __fdiv_rn(log2_e, temperature)};
#else
        return {largest, log2_e / temperature};
#endif
    }
};

/// The weight's logarithm to base 2; -34 in place of less and of NaN.
inline float exponent_of(float logit, const Scaling& scaling) {
    return larger_of(product_of(sum_of(logit, -scaling.largest), scaling.factor), -34.0F);
}

/// 2^x is made of a whole power and a polynomial on [-1/2, 1/2], interpolated at Chebyshev's points, with a
/// relative error of 2^-22.
inline float weight_of_exponent(float x) {
    constexpr float whole = 0x1.8p23F;  // added, leaves x to the nearest integer in the low bits
    const float shifted = sum_of(x, whole);
    const float f = sum_of(x, -sum_of(shifted, -whole));
    float p = fused(0x1.5ec866p-10F, f, 0x1.3cbf60p-7F);
    p = fused(p, f, 0x1.c6afeep-5F);
    p = fused(p, f, 0x1.ebfa4cp-3F);
    p = fused(p, f, 0x1.62e430p-1F);
    constexpr float coarse = 0x1.8p6F;  // a float of this size has multiples of 2^-17
    p = sum_of(fused(p, f, 1.0F + coarse), -coarse);
    const unsigned bits = __builtin_bit_cast(unsigned, p) + (__builtin_bit_cast(unsigned, shifted) << 23);
    constexpr float unit = 0x1p-8F;  // likewise of 2^-31; leaves weights above it what they are
    return sum_of(sum_of(__builtin_bit_cast(float, bits), unit), -unit);
}

/// 0 for NaN and minus infinity.
inline float weight_of(float logit, const Scaling& scaling) {
    return weight_of_exponent(exponent_of(logit, scaling));
}

/// weight * 2^31.
inline unsigned mass_of(float weight) { return static_cast<unsigned>(weight * 0x1p31F); }

/// A weight above 0 by its bits: bins rise with the weight.
struct Bin {
    static constexpr unsigned first = 96U << 6;  ///< the bin of 2^-31

    static unsigned of(unsigned bits) { return (bits >> 17) - first; }
    static unsigned rest(unsigned bits) { return bits >> 6 & (bins - 1); }
    /// The least weight of a bin.
    static unsigned bits(unsigned bin) { return (bin + first) << 17; }
};

/// The mass of weights of one exponent, given the sum of their significands of 18 bits.
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
