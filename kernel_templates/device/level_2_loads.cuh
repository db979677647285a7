// Loads past level 1 that say which lines level 2 should let go of before others (sm_90).
#pragma once

#include "device/packet.cuh"
#include "device/tma.cuh"

namespace hone {

#if __CUDA_ARCH__ >= 900
#define HONE_LOAD(suffix, ...)                                                  \
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint." suffix:__VA_ARGS__ \
                 : "l"(address), "l"(l2_policy<hint>()));

template <class T, int count, L2Hint hint>
__device__ inline Packet<T, count> load_packet_of_level_2(const T* address) {
    constexpr int bytes = sizeof(T) * count;
    typename Word<bytes>::type word;
    if constexpr (bytes == 16) {
        HONE_LOAD("v4.u32 {%0, %1, %2, %3}, [%4], %5;", "=r"(word.x), "=r"(word.y), "=r"(word.z),
                  "=r"(word.w))
    } else if constexpr (bytes == 8) {
        HONE_LOAD("v2.u32 {%0, %1}, [%2], %3;", "=r"(word.x), "=r"(word.y))
    } else if constexpr (bytes == 4) {
        HONE_LOAD("u32 %0, [%1], %2;", "=r"(word))
    } else {
        static_assert(bytes == 2, "an access is 2 to 16 bytes");
        HONE_LOAD("u16 %0, [%1], %2;", "=h"(word))
    }
    Packet<T, count> packet;
    memcpy(&packet, &word, sizeof(word));
    return packet;
}
#undef HONE_LOAD
#endif

}  // namespace hone
