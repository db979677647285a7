// How a consumer of variant wgmma (kernel.cu) converts queries in bf16 that meet codes, in their place in
// shared memory, each warp the 16 rows that it multiplies: to fp16 where codes are multiplied as such, and to
// two codes each where they are multiplied as they are.
#pragma once

#include "attention_prefill/wgmma/layout.cuh"
#include "device/warp.cuh"
#include "device/widen_fp8.cuh"

namespace hone::attention_prefill::warpgroup {

/// The larger one of each half.
__device__ inline uint32 larger_halves(uint32 a, uint32 b) {
    uint32 result;
    asm("max.u16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    return result;
}

/// Converts this warp's rows of a stage and returns what the numbers there have to be multiplied by: a power
/// of two, which leaves the largest of them below 2^15. A number of bf16 has 8 bits, so those are exact that
/// are no more than 2^31 times smaller; what is smaller yet loses less than 2^-38 of the largest. Where some
/// number is not finite the power is 2^0, for the sake of other rows. The tensor cores see what is written;
/// the others' rows they see after a barrier.
__device__ inline float convert_queries(uint32 stage) {
    constexpr int chunks = panels * block_rows / 4 * row_bytes / 512;
    constexpr uint32 bias = 127, top = bias + 14;
    const uint32 own = stage + threadIdx.x / 32 % 4 * (block_rows / 4) * row_bytes + threadIdx.x % 32 * 16;
    const auto at = [own](int i) { return own + i / 4 * block_rows * row_bytes + i % 4 * 512; };

    uint32 largest = 0;
#pragma unroll
    for (int i = 0; i < chunks; ++i) {
        const uint4 words = load_shared_16(at(i));
        const uint32 pairs[4] = {words.x, words.y, words.z, words.w};
        for (int word = 0; word < 4; ++word) largest = larger_halves(largest, pairs[word] & 0x7fff7fffu);
    }
    const uint32 exponent = warp_max(max(largest >> 16, largest & 0xffffu)) >> 7;
    const uint32 e = exponent == 255 ? top : max(exponent, 32u);
    const float factor = __uint_as_float((top + bias - e) << 23);

    const auto convert = [factor](uint32 pair) {
        return pack_pair(fp16{}, __uint_as_float(pair << 16) * factor,
                         __uint_as_float(pair & 0xffff0000u) * factor);
    };
#pragma unroll
    for (int i = 0; i < chunks; ++i) {
        const uint4 words = load_shared_16(at(i));
        store_shared(at(i), uint4{convert(words.x), convert(words.y), convert(words.z), convert(words.w)});
    }
    fence_async_proxy();
    return __uint_as_float((e - 14) << 23);
}

__device__ inline void store_shared_8(uint32 address, uint32 low, uint32 high) {
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(low), "r"(high) : "memory");
}
/// Two numbers of fp16 as codes, and what is left of them.
__device__ inline uint32 codes_of(uint32 pair) {
    uint16 codes;
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(codes) : "r"(pair));
    return codes;
}
__device__ inline uint32 without(uint32 pair, uint32 codes) {
    uint32 result;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(pair), "r"(widen_pair<fp16, 0, 1>(codes)));
    return result;
}
/// NaN in place of numbers that are not finite, for which there are no codes.
__device__ inline uint32 finite_or_nan(uint32 pair) {
    uint32 result;
    asm("fma.rn.f16x2 %0, %1, %2, %1;" : "=r"(result) : "r"(pair), "r"(0u));
    return result;
}

/// Splits this warp's rows of a stage into codes, of which each number is the sum of two: panels of 128 first
/// ones, and behind them as many of second ones. Returns what they have to be multiplied by, a power of two,
/// which leaves the largest below 2^8. Codes have 4 bits: two hold the 8 of a number of bf16 that is no more
/// than 2^10 times smaller than the largest; what is smaller loses no more than 2^-18 of the largest. Rows
/// with numbers that are not finite become NaN.
__device__ inline float split_queries(uint32 stage) {
    constexpr int panel_bytes = block_rows * row_bytes;
    constexpr uint32 bias = 127, top = bias + 7;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const uint32 own = stage + threadIdx.x / 32 % 4 * (block_rows / 4) * row_bytes;
    /// The lane's 8 numbers of a panel in one of four groups of four rows.
    const auto load = [own, lane](int panel, int group) {
        return load_shared_16(own + panel * panel_bytes + group * 512 + lane * 16);
    };
    const auto exponent_below = [load](uint32 limit) {
        uint32 largest = 0;
#pragma unroll
        for (int i = 0; i < 4 * panels; ++i) {
            const uint4 words = load(i / 4, i % 4);
            const uint32 pairs[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                const uint32 low = pairs[word] & 0x7fffu, high = pairs[word] >> 16 & 0x7fffu;
                largest = max(largest, max(low < limit ? low : 0u, high < limit ? high : 0u));
            }
        }
        return warp_max(largest) >> 7;
    };
    const uint32 e = max(exponent_below(0x7f80u), 32u);
    const float factor = __uint_as_float((top + bias - e) << 23);

    // Codes of four rows take the place of their numbers, which all lanes have read by then.
#pragma unroll
    for (int group = 0; group < 4; ++group) {
        uint4 numbers[panels];
#pragma unroll
        for (int panel = 0; panel < panels; ++panel) numbers[panel] = load(panel, group);
        __syncwarp();
        const int row = group * 4 + lane / 8;
#pragma unroll
        for (int panel = 0; panel < panels; ++panel) {
            // 8 numbers of a row are half of a chunk of codes.
            const int eighth = panel % 2 * 8 + (lane % 8 ^ row % 8);
            const uint32 to = own + panel / 2 * panel_bytes + row * row_bytes +
                              ((eighth / 2 ^ row % 8) << 4) + eighth % 2 * 8;
            const uint32 pairs[4] = {numbers[panel].x, numbers[panel].y, numbers[panel].z, numbers[panel].w};
            uint32 first[4], second[4];
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                const uint32 pair = pairs[word];
                const uint32 scaled = finite_or_nan(pack_pair(fp16{}, __uint_as_float(pair << 16) * factor,
                                                              __uint_as_float(pair & 0xffff0000u) * factor));
                first[word] = codes_of(scaled);
                second[word] = codes_of(without(scaled, first[word]));
            }
            store_shared_8(to, first[1] << 16 | first[0], first[3] << 16 | first[2]);
            store_shared_8(to + panels / 2 * panel_bytes, second[1] << 16 | second[0],
                           second[3] << 16 | second[2]);
        }
    }
    fence_async_proxy();
    return __uint_as_float((e + bias - top) << 23);
}

}  // namespace hone::attention_prefill::warpgroup
