// Packets: 1 to 16 bytes that travel as one memory access, holding `count` elements of T. Loads and stores
// take a cache hint; conversions to and from float keep element order.
#pragma once

#include "device/types.cuh"

namespace hone {

template <int bytes>
struct Word;
template <>
struct Word<1> {
    using type = uint8;
};
template <>
struct Word<2> {
    using type = uint16;
};
template <>
struct Word<4> {
    using type = uint32;
};
template <>
struct Word<8> {
    using type = uint2;
};
template <>
struct Word<16> {
    using type = uint4;
};

template <class T, int count>
struct alignas(sizeof(T) * count) Packet {
    static constexpr int bytes = sizeof(T) * count;
    static_assert(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16,
                  "a packet is one memory access of 1, 2, 4, 8 or 16 bytes");
    T elements[count];
};

enum class LoadHint : int { normal = 0, no_allocate = 1, streaming = 2 };
enum class StoreHint : int { normal = 0, streaming = 1 };

#define HONE_LOAD(suffix, ...)                                                        \
    if constexpr (hint == LoadHint::no_allocate)                                      \
        asm volatile("ld.global.L1::no_allocate." suffix:__VA_ARGS__ : "l"(address)); \
    else if constexpr (hint == LoadHint::streaming)                                   \
        asm volatile("ld.global.cs." suffix:__VA_ARGS__ : "l"(address));              \
    else                                                                              \
        asm volatile("ld.global." suffix:__VA_ARGS__ : "l"(address));

/// Volatile, so that no load moves above a dependency wait; not through the read-only path, so that outputs
/// may alias inputs.
template <LoadHint hint, int bytes>
__device__ inline typename Word<bytes>::type load_word(const void* address) {
    typename Word<bytes>::type word;
    if constexpr (bytes == 16) {
        HONE_LOAD("v4.u32 {%0, %1, %2, %3}, [%4];", "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w))
    } else if constexpr (bytes == 8) {
        HONE_LOAD("v2.u32 {%0, %1}, [%2];", "=r"(word.x), "=r"(word.y))
    } else if constexpr (bytes == 4) {
        HONE_LOAD("u32 %0, [%1];", "=r"(word))
    } else if constexpr (bytes == 2) {
        HONE_LOAD("u16 %0, [%1];", "=h"(word))
    } else {
        uint16 wide;
        HONE_LOAD("u8 %0, [%1];", "=h"(wide))
        word = static_cast<uint8>(wide);
    }
    return word;
}
#undef HONE_LOAD

#define HONE_STORE(suffix, ...)                                                      \
    if constexpr (hint == StoreHint::streaming)                                      \
        asm volatile("st.global.cs." suffix ::"l"(address), __VA_ARGS__ : "memory"); \
    else                                                                             \
        asm volatile("st.global." suffix ::"l"(address), __VA_ARGS__ : "memory");

template <StoreHint hint, int bytes>
__device__ inline void store_word(void* address, typename Word<bytes>::type word) {
    if constexpr (bytes == 16) {
        HONE_STORE("v4.u32 [%0], {%1, %2, %3, %4};", "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w))
    } else if constexpr (bytes == 8) {
        HONE_STORE("v2.u32 [%0], {%1, %2};", "r"(word.x), "r"(word.y))
    } else if constexpr (bytes == 4) {
        HONE_STORE("u32 [%0], %1;", "r"(word))
    } else if constexpr (bytes == 2) {
        HONE_STORE("u16 [%0], %1;", "h"(word))
    } else {
        HONE_STORE("u8 [%0], %1;", "h"(static_cast<uint16>(word)))
    }
}
#undef HONE_STORE

template <class T, int count, LoadHint hint = LoadHint::normal>
__device__ inline Packet<T, count> load_packet(const T* address) {
    const auto word = load_word<hint, sizeof(T) * count>(address);
    Packet<T, count> packet;
    memcpy(&packet, &word, sizeof(word));
    return packet;
}

template <StoreHint hint = StoreHint::normal, class T, int count>
__device__ inline void store_packet(T* address, const Packet<T, count>& packet) {
    typename Word<sizeof(T) * count>::type word;
    memcpy(&word, &packet, sizeof(word));
    store_word<hint, sizeof(T) * count>(address, word);
}

template <class T, int count>
__device__ inline void unpack(const Packet<T, count>& packet, float (&values)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] = to_float(packet.elements[i]);
}

/// Rounds to T pairwise: the conversion instructions take two elements at once.
template <class T, int count>
__device__ inline Packet<T, count> pack(const float (&values)[count]) {
    Packet<T, count> packet;
    if constexpr (sizeof(T) == 4 || count == 1) {
#pragma unroll
        for (int i = 0; i < count; ++i) packet.elements[i] = from_float<T>(values[i]);
    } else {
#pragma unroll
        for (int i = 0; i < count; i += 2) {
            const uint32 pair = pack_pair(T{}, values[i], values[i + 1]);
            memcpy(&packet.elements[i], &pair, 2 * sizeof(T));
        }
    }
    return packet;
}

}  // namespace hone
