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
/// Adds 1 to the word `offset` bytes from a shared address, unless `offset` is `never`.
template <uint32 never>
__device__ inline void count_unless(uint32 address, uint32 offset) {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, %2; @p red.shared.add.u32 [%1], 1; }" ::"r"(offset),
                 "r"(address + offset), "n"(never));
}

/// The slots of two numbers, without their signs.
__device__ inline uint32 places(uint32 pair) {
    constexpr uint32 both = 0x00010001u;
    constexpr uint32 minus_before = (0x10000u - Value::before_first) * both;
    return __viaddmin_s16x2_relu(pair & 0x7fff * both, minus_before, Value::larger * both);
}
/// The slots of two numbers in bytes, given those without signs.
__device__ inline uint32 slot_offsets(uint32 pair, uint32 places) {
    static_assert(Value::sign_slots == 1 << 11, "a sign moves from bit 15 to bit 11");
    return (places | (pair >> 4 & 0x08000800u)) << 2;
}

/// Not 0 where one of the halves is 0.
__device__ inline uint32 has_zero(uint32 pair) { return (pair - 0x00010001u) & ~pair & 0x80008000u; }

}  // namespace hone::sample
