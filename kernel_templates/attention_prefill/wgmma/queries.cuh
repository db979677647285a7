// How a consumer of variant wgmma (kernel.cu) converts queries in bf16 that meet codes, which are multiplied
// as fp16: in their place in shared memory, each warp the 16 rows that it multiplies.
#pragma once

#include "attention_prefill/wgmma/layout.cuh"
#include "device/warp.cuh"

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

}  // namespace hone::attention_prefill::warpgroup
