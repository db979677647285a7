// What kernels, plans and the host's tests compute alike: the mass of a token, where values are counted, and
// how a row is cut and what lies in shared memory. Plain C++.
//
// A token's mass is its probability, as a whole number that the host and every GPU compute to the same bits,
// so that the same numbers lead to the same token wherever they are computed:
//
// mass = 2^31 * 2^((logit - largest) * log2(e) / temperature), with the power's mantissa rounded to multiples
// of 2^-17 and the product cut to a whole number. It is 2^31 for the largest logit, and 0 below 2^-31 of it.
// Sums of masses have no order. As a float, which it is exactly, the mantissa's upper 6 bits and the exponent
// are the mass's bin, its next 11 bits the place within: two histograms find any threshold exactly.
//
// Values: a bf16 logit of 2^-10 to 63.25, of either sign, has a slot in which tokens of its value are
// counted, so that what all of them have in common, their mass, is computed once. Smaller and larger numbers,
// zeros, infinities and NaN stand outside; their slots are shared.
//
// Geometry: a row is cut into as many pieces as blocks share it, a piece into one for each warp. Neighbours
// in the row are neighbours in rank, so that sums over blocks, warps and lanes follow the order of the
// tokens. A warp goes through its piece in steps of 32 packets.
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
inline float product_of(float a, float b) {
#ifdef __CUDACC__
    return __fmul_rn(a, b);
#else
    return a * b;
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
inline constexpr float whole = 0x1.8p23F;  ///< added, leaves a number's nearest integer in its low bits

/// (2^f - 1) / f for f in [-1/2, 1/2].
inline float power_slope(float f) {
    float p = fused(0x1.5ec866p-10F, f, 0x1.3cbf60p-7F);
    p = fused(p, f, 0x1.c6afeep-5F);
    p = fused(p, f, 0x1.ebfa4cp-3F);
    return fused(p, f, 0x1.62e430p-1F);
}

inline unsigned mass_of_distance(float distance, const Scaling& scaling) {
    const float shifted = fused(distance, scaling.factor, whole);
    const float f = fused(distance, scaling.factor, -sum_of(shifted, -whole));
    constexpr float coarse = 0x1.8p6F;  // a float of this size has multiples of 2^-17
    const float p = fused(power_slope(f), f, 1.0F + coarse);
    const unsigned significand = __builtin_bit_cast(unsigned, p) - __builtin_bit_cast(unsigned, coarse);
    const unsigned shift = __builtin_bit_cast(unsigned, whole) - __builtin_bit_cast(unsigned, shifted);
    return significand << (mass_bits - 17) >> shift;
}

inline unsigned mass_of(float logit, const Scaling& scaling) {
    return mass_of_distance(distance_of(logit, scaling), scaling);
}

/// A logit as probabilities see it: softcap * tanh(logit / softcap), or the logit itself where softcap is 0.
/// What is not finite stays. A larger logit may be seen as one unit in the last place less; none is seen as
/// farther from the largest than 0.
template <int softcap>
struct Seen {
    static float logit(float logit) {
        if constexpr (softcap == 0) {
            return logit;
        } else {
            constexpr float cap = softcap;
            const float y = product_of(logit, 1.0F / cap);
            const float size = y < 0.0F ? -y : y;
            const float capped = product_of(size < 0.5F ? tanh_of_small(size) : tanh_of_large(size), cap);
            return size <= 0x1.fffffep127F ? (y < 0.0F ? -capped : capped) : logit;
        }
    }
    static Scaling scaling(float largest, float temperature) {
        return Scaling::of(Seen::logit(largest), temperature);
    }
    /// Up to 0.
    static float distance(float logit, const Scaling& scaling) {
        const float distance = distance_of(Seen::logit(logit), scaling);
        if constexpr (softcap == 0) return distance;
        return distance < 0.0F ? distance : 0.0F;
    }
    static unsigned mass(float logit, const Scaling& scaling) {
        return mass_of_distance(distance(logit, scaling), scaling);
    }

  private:
    /// Up to 1/2: odd, interpolated at Chebyshev's points.
    static float tanh_of_small(float y) {
        const float square = product_of(y, y);
        float p = fused(0x1.26ba44p-6F, square, -0x1.b558e2p-5F);
        p = fused(p, square, 0x1.110216p-3F);
        p = fused(p, square, -0x1.555546p-2F);
        return fused(product_of(p, square), y, y);
    }
    /// From 1/2 on: (1 - e) / (1 + e) with e = 2^(-2 log2(e) y).
    static float tanh_of_large(float y) {
        const float exponent = product_of(y < 16.0F ? y : 16.0F, -2.0F * log2_e);
        const float shifted = sum_of(exponent, whole);
        const float f = sum_of(exponent, -sum_of(shifted, -whole));
        const float power = fused(power_slope(f), f, 1.0F);
        const unsigned down = __builtin_bit_cast(unsigned, whole) - __builtin_bit_cast(unsigned, shifted);
        const float e = __builtin_bit_cast(float, __builtin_bit_cast(unsigned, power) - (down << 23));
        return quotient_of(sum_of(1.0F, -e), sum_of(1.0F, e));
    }
};

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

inline unsigned long long high_product(unsigned long long a, unsigned long long b) {
#ifdef __CUDACC__
    return __umul64hi(a, b);
#else
    __extension__ using Wide = unsigned __int128;
    return static_cast<unsigned long long>(static_cast<Wide>(a) * b >> 64);
#endif
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

inline constexpr int value_slots = 4096;

/// Where a bf16 logit is counted by its value.
struct Value {
    static constexpr int sign_slots = value_slots / 2;
    static constexpr int smaller = 0;              ///< the slot of what is nearer to 0, zeros among them
    static constexpr int larger = sign_slots - 1;  ///< the slot of what is farther from 0, NaN among them
    static constexpr unsigned before_first = (117U << 7) - 1;  ///< the bits below those of 2^-10
    static constexpr float least = 0x1p-10F;
    static constexpr float most = 63.25F;

    static constexpr int slot(unsigned bits) {
        const int place = static_cast<int>(bits & 0x7fffU) - static_cast<int>(before_first);
        const int within = place < smaller ? smaller : place > larger ? larger : place;
        return within + (bits >> 15 & 1U) * sign_slots;
    }
    static constexpr bool is_inside(int slot) {
        return slot % sign_slots != smaller && slot % sign_slots != larger;
    }
    /// The number of a slot that is inside.
    static float of(int slot) {
        const unsigned sign = slot / sign_slots;
        const unsigned bits = sign << 15 | (static_cast<unsigned>(slot % sign_slots) + before_first);
        return __builtin_bit_cast(float, bits << 16);
    }
};

/// Which tokens a block, a warp and a lane own.
struct Geometry {
    long long vocabulary;
    int blocks;  ///< that share a row
    int threads;
    int vector;  ///< elements a packet

    [[nodiscard]] constexpr int warps() const { return threads / 32; }
    [[nodiscard]] constexpr int step_tokens() const { return 32 * vector; }
    [[nodiscard]] constexpr int steps() const {
        const long long all = static_cast<long long>(blocks) * warps() * step_tokens();
        return static_cast<int>((vocabulary + all - 1) / all);
    }
    [[nodiscard]] constexpr int warp_tokens() const { return steps() * step_tokens(); }
    [[nodiscard]] constexpr int block_tokens() const { return warps() * warp_tokens(); }
    /// Parts of `count` that a block's tokens are cut into.
    [[nodiscard]] constexpr int part_tokens(int count) const { return block_tokens() / count; }
};

/// Histograms: the first; the second for top-k and for top-p, in one place where shared memory is short.
constexpr int search_stages(bool is_short) { return is_short ? 2 : 3; }
inline constexpr int most_parts = 4;  ///< parts of a block that counts values
inline constexpr int searches = 4;    ///< each of two thresholds in two histograms

/// Bytes of Scratch (row.cu), a multiple of 16.
constexpr int scratch_bytes(int blocks, int warps, bool filters, bool is_short) {
    const int exchange = 8 * blocks + 8 * warps + 16 * blocks + 16 * warps;
    const int stages = search_stages(is_short);
    const int search =
        (stages + 1) * 2048 * 4 + 32 * 4 + stages * (blocks + 1) * 32 * 16 + searches * 2 * 64 * 4;
    const int parts = is_short ? most_parts * 32 * 8 : 0;
    return (exchange + parts + (filters ? search : 0) + 15) / 16 * 16;
}

/// Shared memory that a block may take so that 1024 threads fill a multiprocessor.
constexpr int shared_budget(int threads) {
    const int share = 228 * 1024 / (1024 / threads);
    return share - 1024;
}

/// Parts of a block's bf16 logits that are counted by value, each in slots of its own, so that the drawn
/// token is looked for in one part alone: up to four, as memory, steps and warps allow.
constexpr int value_parts(const Geometry& cut, bool filters) {
    int parts = 4;
    const auto fits = [&] {
        return 4 * value_slots * parts + 2 * cut.block_tokens() +
                   scratch_bytes(cut.blocks, cut.warps(), filters, true) <=
               shared_budget(cut.threads);
    };
    while (parts > 1 && (cut.steps() % parts != 0 || cut.warps() < 8 * parts || !fits())) parts /= 2;
    return parts;
}

}  // namespace hone::sample
