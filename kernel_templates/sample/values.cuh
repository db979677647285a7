// Where a bf16 logit is counted by its value: a slot for each number of 2^-10 to 63.25, of either sign, so
// that what all tokens of a value have in common, their mass, is computed once. Smaller and larger numbers,
// zeros, infinities and NaN stand outside; their slots are shared. Plain C++.
#pragma once

namespace hone::sample {

inline constexpr int value_slots = 4096;

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

}  // namespace hone::sample
