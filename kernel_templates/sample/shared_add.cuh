// Additions in shared memory under a condition, without a branch, so that those of several tokens overlap;
// and what two bf16 numbers of a word need for it.
#pragma once

#include "device/sync.cuh"
#include "sample/values.cuh"

namespace hone::sample {

/// Adds to the word at a shared address where `condition` is not 0.
__device__ inline void add_where(uint32 condition, uint32 address, uint32 value) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p red.shared.add.u32 [%1], %2; }" ::"r"(condition),
                 "r"(address), "r"(value));
}
/// Adds 1 to the word at a shared address.
__device__ inline void count_one(uint32 address) {
    asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(address));
}

/// The slots of two numbers, without their signs.
__device__ inline uint32 places(uint32 pair) {
    constexpr uint32 both = 0x00010001u;
    constexpr uint32 minus_before = (0x10000u - Value::before_first) * both;
    return __viaddmin_s16x2_relu(pair & 0x7fff * both, minus_before, Value::larger * both);
}
/// The slots of two numbers in bytes, given those without signs, each beyond `first` bytes.
__device__ inline uint32 slot_offsets(uint32 pair, uint32 places, uint32 first) {
    static_assert(Value::sign_slots == 1 << 11, "a sign moves from bit 15 to bit 13");
    return places * 4 + first * 0x00010001u | (pair >> 2 & 0x20002000u);
}

/// The larger ones of two times two numbers; NaN is none.
__device__ inline uint32 larger_pair(uint32 a, uint32 b) {
    uint32 larger;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    return larger;
}

/// Not 0 where one of the halves is 0.
__device__ inline uint32 has_zero(uint32 pair) { return (pair - 0x00010001u) & ~pair & 0x80008000u; }

}  // namespace hone::sample
