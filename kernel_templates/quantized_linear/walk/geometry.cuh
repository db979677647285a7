// Variant walk: what a config makes of threads and shared memory. Plain C++ that plans and kernels include
// alike.
//
// Blocks stay for the whole call and walk over groups of 16 rows. The columns come in units of 128, of which
// k_warps warps take `unroll` each in turn, all of the same rows. A finishing warp adds up what the others
// leave.
//
// The right operand has 8 columns a block. w8a8 and fp8: a column is a token. Packed weights: a column is a
// digit of a token, whose numbers stand as integers of three digits of 8 bits, times a power of two for each
// unit.
#pragma once

#include "quantized_linear/layout.cuh"

namespace hone::quantized_linear {

struct WalkGeometry {
    int products;
    int in;
    int out;
    bool digits;         ///< x as digits
    int x_bytes;         ///< of an element of x in shared memory
    bool blocks_scaled;  ///< x and weight have scales for 128 columns
    bool zeros;          ///< the weight has zero points: digits are added up
    int sets;            ///< of columns of a unit that have a scale each, at least one
    bool norm;           ///< x is normalized on its way: squares are added up
    int tokens;          ///< of a block, all of them
    int k_warps;         ///< that share the rows
    int unroll;          ///< units that a warp has under way

    static constexpr int rows = 16;
    static constexpr int unit_columns = 128;
    static constexpr int buffers = 2;
    static constexpr int digits_each = 3;

    constexpr int columns() const { return digits ? digits_each * tokens : tokens; }
    constexpr int column_blocks() const { return (columns() + 7) / 8; }
    constexpr int threads() const { return 32 * (k_warps + 1); }
    constexpr int units() const { return (in + unit_columns - 1) / unit_columns; }
    /// Units that all warps take at a time.
    constexpr int turn() const { return k_warps * unroll; }
    constexpr int turns() const { return (units() + turn() - 1) / turn(); }
    constexpr int groups() const { return (out + rows - 1) / rows; }

    // x [columns][x_pitch]; a pitch that puts 16 bytes of each of 8 columns into distinct banks. Behind it
    // zeros, which stand for columns that do not exist, wherever in a unit. Units behind the last are zeros.
    constexpr int unit_bytes() const { return unit_columns * x_bytes; }
    constexpr int x_pitch() const { return turns() * turn() * unit_bytes() + 16; }
    constexpr int zeros_at() const { return columns() * x_pitch(); }
    // Scales of x [units][columns, whole blocks], and sums of digits [units][sets][columns, whole blocks].
    constexpr int scale_columns() const { return column_blocks() * 8; }
    constexpr bool has_scales() const { return digits || blocks_scaled; }
    constexpr int scales_at() const { return zeros_at() + unit_bytes(); }
    constexpr int scale_words() const { return has_scales() ? turns() * turn() * scale_columns() : 0; }
    constexpr int digit_sums_at() const { return scales_at() + 4 * scale_words(); }
    constexpr int digit_sum_words() const { return zeros ? turns() * turn() * sets * scale_columns() : 0; }
    // Sums of squares of x [tokens][units], in whole 16 bytes.
    constexpr int squares_at() const { return digit_sums_at() + 4 * digit_sum_words(); }
    constexpr int square_words() const { return norm ? (tokens * turns() * turn() + 3) / 4 * 4 : 0; }
    constexpr int barriers_at() const { return squares_at() + 4 * square_words(); }

    // Sums of the warps: buffers of [k_warps][products][columns][partial_pitch] floats; a pitch that puts
    // fragments of 8 rows x 4 pairs of columns into distinct banks.
    static constexpr int partial_pitch = rows + 4;
    constexpr int partials_at() const { return barriers_at() + 16 * buffers; }
    constexpr int buffer_floats() const { return k_warps * products * columns() * partial_pitch; }
    constexpr int shared_bytes() const { return partials_at() + 4 * buffers * buffer_floats(); }
};

}  // namespace hone::quantized_linear
