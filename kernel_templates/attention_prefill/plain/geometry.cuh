// Geometry of variant plain (kernel.cu): what follows from its tunables and the head's size. Plain C++ that
// both the host's plan (plan.cpp) and the kernel include, so that they cannot disagree.
#pragma once

namespace hone::attention_prefill::cuda_cores {

/// Threads that share rows of the tile: each has every 16th of their scores.
inline constexpr int lanes = 16;

struct Geometry {
    int head_dim = 0;
    int tile_m = 64;
    int tile_n = 64;
    int thread_m = 8;  ///< rows of a thread
    int columns = 16;  ///< columns of the keys that a step brings, about
    int vector = 1;    ///< elements an access to global memory

    constexpr int threads() const { return tile_m / thread_m * lanes; }
    constexpr int thread_n() const { return tile_n / lanes; }

    // Keys pass through shared memory `key_columns` columns a step, all tile_n rows of them.
    constexpr int key_steps() const { return (head_dim + columns - 1) / columns; }
    constexpr int key_columns() const { return ((head_dim + key_steps() - 1) / key_steps() + 3) / 4 * 4; }
    /// Floats between rows: an odd number of vectors, so that eight rows are in distinct banks.
    constexpr int key_pitch() const { return key_columns() + (key_columns() % 8 == 0 ? 4 : 8); }

    // A thread's results: `groups` vectors of `width` columns, 16 such vectors apart.
    constexpr int width() const { return head_dim % 64 == 0 || head_dim % 64 > 32 ? 4 : 2; }
    constexpr int groups() const { return (head_dim + lanes * width() - 1) / (lanes * width()); }
    constexpr int thread_columns() const { return groups() * width(); }
    constexpr int value_pitch() const { return lanes * thread_columns(); }

    // Values pass `value_rows` rows a step, as many floats as keys do, four rows at least.
    constexpr int value_rows() const {
        int rows = tile_n;
        while (rows > 4 && rows * value_pitch() > tile_n * columns) rows /= 2;
        return rows;
    }
    constexpr int value_steps() const { return tile_n / value_rows(); }

    // Accesses of a thread to bring a step's numbers.
    constexpr int key_packets() const { return key_columns() / vector; }
    constexpr int value_packets() const { return (head_dim + vector - 1) / vector; }
    constexpr int rounds() const {
        const int keys = (tile_n * key_packets() + threads() - 1) / threads();
        const int values = (value_rows() * value_packets() + threads() - 1) / threads();
        return keys > values ? keys : values;
    }

    // Shared memory, in floats: queries, weights, two buffers.
    constexpr int query_pitch() const { return key_steps() * key_columns() + 4; }
    /// Neighbouring rows half the banks apart.
    constexpr int weight_pitch() const { return tile_n + 16; }
    constexpr int buffer_floats() const {
        const int keys = tile_n * key_pitch();
        const int values = value_rows() * value_pitch();
        return keys > values ? keys : values;
    }
    constexpr int weights_at() const { return tile_m * query_pitch(); }
    constexpr int buffers_at() const { return weights_at() + tile_m * weight_pitch(); }
    constexpr int shared_bytes() const { return 4 * (buffers_at() + 2 * buffer_floats()); }

    /// Registers that a thread cannot do without.
    constexpr int registers(int element_bytes) const {
        const int packet = (vector * element_bytes + 3) / 4;
        return thread_m * (thread_columns() + thread_n() + 6) + thread_columns() + rounds() * packet + 40;
    }
};

}  // namespace hone::attention_prefill::cuda_cores
