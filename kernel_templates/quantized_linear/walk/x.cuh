// Variant walk (kernel.cu): x in shared memory, in the order that weights suit (units.cuh), and how warps
// read it from there.
//
// Under packed weights a number of x is an integer of three digits of 8 bits, each from -128 to 127, times a
// power of two that 128 columns share: of 22 bits and a sign, so that numbers up to 2^13 times smaller than
// the largest of the 128 keep all bits of a bf16. A token with a NaN or an infinity among them is NaN.
#pragma once

#include "device/level_2.cuh"
#include "device/reduce.cuh"
#include "device/shared_tile.cuh"
#include "device/sync.cuh"
#include "quantized_linear/walk/units.cuh"

namespace hone::quantized_linear::walk {

/// All units of all warps, those that are none too.
inline constexpr int staged_units = geometry.turns() * geometry.turn();
inline constexpr int scale_columns = geometry.scale_columns();

__device__ inline uint2 load_shared_8(uint32 address) {
    uint2 word;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(word.x), "=r"(word.y) : "r"(address) : "memory");
    return word;
}
__device__ inline void store_shared_8(uint32 address, uint2 word) {
    asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(address), "r"(word.x), "r"(word.y) : "memory");
}

/// What a lane names for ldmatrix: row l % 8 of 8 x 8 matrix l / 8, which has 16 bytes from 16 (l / 8) on of
/// 64; and its columns 2 t and 2 t + 1 of scales and sums.
class X {
  public:
    __device__ explicit X(uint32 shared) {
        const int lane = threadIdx.x % 32;
        exists_ = (column_blocks - 1) * 8 + lane % 8 < geometry.columns();
        at_ = shared + lane % 8 * geometry.x_pitch() + lane / 8 * 16;
        last_at_ = exists_ ? at_ + (column_blocks - 1) * 8 * geometry.x_pitch()
                           : shared + geometry.zeros_at() + lane / 8 * 16;
        pairs_ = shared + geometry.scales_at() + lane % 4 * 8;
    }
    /// 64 bytes of 8 columns, number `quarter` of unit `unit`.
    __device__ void load(uint32 (&words)[4], int unit, int quarter, int n) const {
        const int step = unit * geometry.unit_bytes();
        const uint32 place = n == column_blocks - 1 ? last_at_ + (exists_ ? step : 0)
                                                    : at_ + n * 8 * geometry.x_pitch() + step;
        load_matrices(words, place + quarter * 64);
    }
    /// Scales of a unit.
    __device__ void scales(int unit, int n, float (&pair)[2]) const {
        const uint2 words = load_shared_8(pairs_ + (unit * scale_columns + n * 8) * 4);
        pair[0] = __uint_as_float(words.x);
        pair[1] = __uint_as_float(words.y);
    }
    /// Sums of digits.
    __device__ void digit_sums(int unit, int set, int n, int (&pair)[2]) const {
        constexpr int from = geometry.digit_sums_at() - geometry.scales_at();
        const uint2 words =
            load_shared_8(pairs_ + from + ((unit * geometry.sets + set) * scale_columns + n * 8) * 4);
        pair[0] = static_cast<int>(words.x);
        pair[1] = static_cast<int>(words.y);
    }

  private:
    uint32 at_;
    uint32 last_at_;
    uint32 pairs_;
    bool exists_;
};

/// Eight neighbouring numbers of x as digits, by one of 16 lanes that share a unit.
class Digits {
  public:
    __device__ explicit Digits(const Packet<Element, 8>& packet) {
        uint32 words[4];
        memcpy(words, &packet, 16);
        uint32 most = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) most = __vmaxu2(most, words[i] & 0x7fff7fffu);
#pragma unroll
        for (int distance = 8; distance > 0; distance /= 2)
            most = __vmaxu2(most, __shfl_xor_sync(0xffffffffu, most, distance));
        const Element largest{static_cast<uint16>(max(most >> 16, most & 0xffffu))};
        cut(packet, static_cast<int>(__float_as_uint(to_float(largest)) >> 23));
    }
    __device__ explicit Digits(const float (&values)[8]) {
        uint32 most = 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) most = max(most, __float_as_uint(values[i]) & 0x7fffffffu);
#pragma unroll
        for (int distance = 8; distance > 0; distance /= 2)
            most = max(most, __shfl_xor_sync(0xffffffffu, most, distance));
        cut(values, static_cast<int>(most >> 23));
    }

    /// Words 2 h and 2 h + 1 of the 16 columns that two lanes share, h being the lane's lowest bit: bytes 0
    /// and 2 of a word are the first lane's, 1 and 3 the other's.
    __device__ uint2 words(int digit) const {
        const bool second = threadIdx.x % 2 != 0;
        const uint32(&p)[4] = pairs_[digit];
        const uint32 low = __shfl_xor_sync(0xffffffffu, second ? p[0] : p[2], 1);
        const uint32 high = __shfl_xor_sync(0xffffffffu, second ? p[1] : p[3], 1);
        const uint32 shift = second ? 8 : 0;
        return {((second ? p[2] : p[0]) << shift | low << (8 - shift)) ^ 0x80808080u,
                ((second ? p[3] : p[1]) << shift | high << (8 - shift)) ^ 0x80808080u};
    }

    float scale;

  private:
    __device__ static void widen(const Packet<Element, 8>& packet, float (&values)[8]) {
        unpack(packet, values);
    }
    __device__ static void widen(const float (&numbers)[8], float (&values)[8]) {
        memcpy(values, numbers, sizeof(values));
    }
    /// `exponent`: the field of the largest of all 128 numbers.
    template <class Numbers>
    __device__ void cut(const Numbers& packet, int exponent) {
        // The largest becomes 2^21 to 2^22.
        const int field = min(275 - exponent, 253);
        scale = exponent == 255 ? __uint_as_float(0x7fffffffu)
                                : __uint_as_float(static_cast<uint32>(254 - field) << 23);
        const float factor = __uint_as_float(static_cast<uint32>(field) << 23);
        // A sum with 3 * 2^22 has the integer in its low bits; with 128 more in each of them, its bytes are
        // the digits and 128.
        float values[8];
        widen(packet, values);
        uint32 numbers[8];
#pragma unroll
        for (int i = 0; i < 8; ++i)
            numbers[i] = __float_as_uint(fmaf(values[i], factor, 12582912.0f)) - 0x4b400000u + 0x00808080u;
#pragma unroll
        for (int j = 0; j < WalkGeometry::digits_each; ++j) {
#pragma unroll
            for (int t = 0; t < 4; ++t)
                pairs_[j][t] = __byte_perm(numbers[2 * t], numbers[2 * t + 1], 0x3030 | (4 + j) << 8 | j);
        }
    }

    uint32 pairs_[WalkGeometry::digits_each][4];  ///< digits of columns 2 t and 2 t + 1 in bytes 0 and 2
};

__device__ inline int sum_of_bytes(uint2 words) {
    return __dp4a(static_cast<int>(words.x), 0x01010101, __dp4a(static_cast<int>(words.y), 0x01010101, 0));
}

/// One token's numbers in one unit, a packet or eight of float32; `exists`: else they are not stored.
template <class Numbers>
__device__ inline void store_digits(const Numbers& numbers, uint32 shared, int token, int unit, bool exists) {
    const int lane = threadIdx.x % 16;
    const Digits digits(numbers);
    // Codes of 4 bits are multiplied as 16 times their value.
    constexpr float one = format == Format::w4a16 ? 0.0625f : 1.0f;
    constexpr float weights[WalkGeometry::digits_each] = {one, 256.0f * one, 65536.0f * one};
#pragma unroll
    for (int j = 0; j < WalkGeometry::digits_each; ++j) {
        const int at = token * WalkGeometry::digits_each + j;
        const uint2 words = digits.words(j);
        if (exists) store_shared_8(shared + at * geometry.x_pitch() + unit * unit_columns + lane * 8, words);
        if (exists && lane == 0)
            store_shared(shared + geometry.scales_at() + (unit * scale_columns + at) * 4,
                         __float_as_uint(digits.scale * weights[j]));
        if constexpr (has_zeros) {
            constexpr int lanes = 16 / geometry.sets;
            int sum = sum_of_bytes(words);
#pragma unroll
            for (int distance = lanes / 2; distance > 0; distance /= 2)
                sum += __shfl_xor_sync(0xffffffffu, sum, distance);
            if (exists && lane % lanes == 0)
                store_shared(shared + geometry.digit_sums_at() +
                                 ((unit * geometry.sets + lane / lanes) * scale_columns + at) * 4,
                             static_cast<uint32>(sum));
        }
    }
}

/// x times the norm's weight; the squares of x are stored as the unit's sum.
__device__ inline void fold_norm(const Packet<Element, 8>& x, const Packet<Element, 8>& norm_weight,
                                 uint32 shared, int token, int unit, bool exists, float (&values)[8]) {
    float weights[8];
    unpack(x, values);
    unpack(norm_weight, weights);
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        squares = fmaf(values[i], values[i], squares);
        values[i] *= weights[i];
    }
    squares = reduce_lanes<Sum, 16>(squares);
    if (exists && threadIdx.x % 16 == 0)
        store_shared(shared + geometry.squares_at() + (token * staged_units + unit) * 4,
                     __float_as_uint(squares));
}

/// What a token's sums are multiplied with behind a norm, by a warp, behind the barrier after stage_x().
__device__ inline float norm_factor(const Tensors& tensors, const unsigned char* memory, int token) {
    const auto* const squares = reinterpret_cast<const float*>(memory + geometry.squares_at());
    float sum = 0.0f;
#pragma unroll
    for (int unit = threadIdx.x % 32; unit < staged_units; unit += 32)
        sum += squares[token * staged_units + unit];
    return tensors.norm_factor(reduce_lanes<Sum, 32>(sum));
}

/// x of packed weights: 16 lanes take a token's unit, several of them under way at a time.
__device__ inline void stage_digits(const Tensors& tensors, uint32 shared) {
    constexpr int tasks = geometry.tokens * staged_units;
    constexpr int at_once = geometry.threads() / 16;
    constexpr int rounds = (tasks + at_once - 1) / at_once;
    constexpr int together = rounds < 4 ? rounds : 4;
    const int lane = threadIdx.x % 16;
    const int last_token = static_cast<int>(tensors.tokens) - 1;
    const auto* const x = reinterpret_cast<const Element*>(tensors.x);
#pragma unroll 1
    for (int round = 0; round < rounds; round += together) {
        const int first = round * at_once + static_cast<int>(threadIdx.x) / 16;
        Packet<Element, 8> packets[together];
        Packet<Element, 8> norm_weights[together];
#pragma unroll
        for (int i = 0; i < together; ++i) {
            const int task = min(first + i * at_once, tasks - 1);
            const int column = task % staged_units * unit_columns + lane * 8;
            const int64 row = min(task / staged_units, last_token) * tensors.x_stride;
            packets[i] = load_packet<Element, 8>(x + row + (column < in ? column : 0));
            if constexpr (folds_norm)
                norm_weights[i] = load_packet<Element, 8>(tensors.norm_weight + (column < in ? column : 0));
            if (column >= in) packets[i] = {};
        }
#pragma unroll
        for (int i = 0; i < together; ++i) {
            const int task = first + i * at_once;
            const int token = task / staged_units;
            const int unit = task % staged_units;
            if constexpr (folds_norm) {
                float values[8];
                fold_norm(packets[i], norm_weights[i], shared, token, unit, task < tasks, values);
                store_digits(values, shared, token, unit, task < tasks);
            } else {
                store_digits(packets[i], shared, token, unit, task < tasks);
            }
        }
    }
    // Scales and sums of columns that do not exist.
    constexpr int missing = scale_columns - geometry.columns();
    if constexpr (missing > 0) {
        constexpr int words = geometry.scale_words() + geometry.digit_sum_words();
        for (int i = threadIdx.x; i < words / scale_columns * missing; i += geometry.threads())
            store_shared(shared + geometry.scales_at() +
                             (i / missing * scale_columns + geometry.columns() + i % missing) * 4,
                         0u);
    }
}

/// Four neighbouring codes of x in the order of RowUnit. Columns 64 p + 16 t + 4 i + j of a unit: of int8
/// byte 4 t + j of matrix i of panel p; of fp8 the products of 16 columns number 4 p + i, k 2 t, 2 t + 1 for
/// j = 0, 1 and k 2 t + 8, 2 t + 9 for j = 2, 3.
__device__ inline void place_codes(uint32 token, int column, uint32 codes) {
    const int panel = column / 64;
    const int t = column % 64 / 16;
    const int i = column % 16 / 4;
    if constexpr (format == Format::w8a8) {
        store_shared(token + panel * 64 + i * 16 + t * 4, codes);
    } else {
        const uint32 place = token + (panel * 4 + i) * 32 + t * 4;
        store_shared(place, widen_pair<fp16, 0, 1>(codes));
        store_shared(place + 16, widen_pair<fp16, 2, 3>(codes));
    }
}

/// x of w8a8 and fp8.
__device__ inline void stage_codes(const Tensors& tensors, uint32 shared) {
    constexpr int chunks = staged_units * unit_columns / 16;
    const int last_token = static_cast<int>(tensors.tokens) - 1;
    for (int i = threadIdx.x; i < geometry.tokens * chunks; i += geometry.threads()) {
        const int token = i / chunks;
        const int at = i % chunks * 16;
        const auto* const row =
            reinterpret_cast<const uint8*>(tensors.x) + min(token, last_token) * tensors.x_stride;
        uint4 codes = load_word<LoadHint::normal, 16>(row + (at < in ? at : 0));
        if (at >= in) codes = {0, 0, 0, 0};
#pragma unroll
        for (int word = 0; word < 4; ++word)
            place_codes(shared + token * geometry.x_pitch(), at + 4 * word, part(codes, word));
    }
    if constexpr (has_blocks) {
        for (int i = threadIdx.x; i < geometry.scale_words(); i += geometry.threads()) {
            const int token = min(i % scale_columns, last_token);
            const int unit = min(i / scale_columns, units - 1);
            const float scale = tensors.x_scales[token * tensors.x_scale_stride + unit];
            store_shared(shared + geometry.scales_at() + i * 4, __float_as_uint(scale));
        }
    }
}

/// Level 2 is asked for the norm's weight, which nothing writes: it may stand in front of the wait for x.
__device__ inline void ask_for_norm_weight(const Tensors& tensors) {
    constexpr int line = 128 / sizeof(Element);
    for (int column = threadIdx.x * line; column < in; column += geometry.threads() * line)
        prefetch_level_2(tensors.norm_weight + column);
}

/// By all threads. Columns behind the last become zeros, tokens that are none repeat the last.
__device__ inline void stage_x(const Tensors& tensors, uint32 shared) {
    if (threadIdx.x < geometry.unit_bytes() / 4)
        store_shared(shared + geometry.zeros_at() + threadIdx.x * 4, 0u);
    if constexpr (is_packed)
        stage_digits(tensors, shared);
    else
        stage_codes(tensors, shared);
}

}  // namespace hone::quantized_linear::walk
