// Quantize weights, variant warps: three launches.
//
// 1. clear    the list of bad rows, and for 8-bit formats the largest magnitudes, in the workspace.
// 2. scales   w4a16: a warp searches the scale of one group of one row (warp_group.cuh) and writes it with
// its
//             zero point; places of padding have warps, too. Other formats: a warp takes up to 1024 columns
//             of one row that share a scale, keeps the largest magnitude in registers, and leaves it in the
//             workspace by one atomic maximum. Rows that have weights without a code are noted.
// 3. encode   reads the weights again, from L2 where they still are there. Codes in blocks: a block of 128
//             threads makes one of 64 x 64, a thread its 32 codes in the order of layout.cuh, written 16
//             bytes at a time. Codes row by row: 256 threads make 1024 of a row. Scales of 8 bits are
//             computed from the largest magnitudes, and whoever has the first element of those that share one
//             writes it.
//
// Warps share nothing but the table of parts, which stands behind the one barrier of the second launch.
// Weights are read element by element: rows may begin anywhere.
#include "quantize_weights/warp_group.cuh"

namespace hone::quantize_weights::warps {

inline constexpr int threads = Tuned::threads;
inline constexpr int warps_a_block = threads / 32;
inline constexpr int clear_threads = 256;
inline constexpr int block_threads = 128;  ///< threads for a block of codes
inline constexpr int row_threads = 256;    ///< threads for 1024 codes of a row
inline constexpr int row_codes = 4;        ///< codes that a thread makes
/// Columns that a warp finds the largest magnitude of.
inline constexpr int span = has_groups ? width : 1024;
inline constexpr int spans = (in + span - 1) / span;

/// Zero points are 0 to 15.
__device__ inline uint8* zeros_of(const Tensors& t) { return reinterpret_cast<uint8*>(t.zeros); }

__device__ inline void clear(const Tensors& t, int64 maxima) {
    const int64 i = static_cast<int64>(blockIdx.x) * clear_threads + threadIdx.x;
    if (i == 0) t.bad_rows() = {no_row, no_row};
    if (i < maxima) t.maxima()[i] = 0;
}

struct Extremes {
    float low;
    float high;
    bool finite;
};

__device__ inline Extremes extremes_of(const Element* from, int count) {
    float low = infinity, high = -infinity;
    bool finite = true;
#pragma unroll 4
    for (int i = WarpGroup::lane(); i < count; i += lanes) {
        const float value = to_float(from[i]);
        low = fminf(low, value);
        high = fmaxf(high, value);
        finite &= is_finite(value);
    }
    return {-reduce_lanes<Max, lanes>(-low), reduce_lanes<Max, lanes>(high),
            __all_sync(all_lanes, finite) != 0};
}

/// Padding, weights that are as good as zero, and those that are noted as bad have scale 0.
__device__ inline Choice choose(const Tensors& t, int64 row, int group, float* values, const float* table) {
    const Element* from = t.weight + row * t.weight_stride + static_cast<int64>(group) * width;
    const Extremes found = extremes_of(from, width);
    if (!found.finite) {
        if (WarpGroup::lane() == 0) atomicMin(&t.bad_rows().not_finite, static_cast<int>(row));
        return {};
    }
    if (fmaxf(-found.low, found.high) < smallest_magnitude) return {};
    const Range range = Range::of(found.low, found.high);
    const WarpGroup warp_group{from, range.factor(), values, table};
    if constexpr (is_one_piece && searches) warp_group.stage(0);
    const Choice choice = ScaleSearch<has_zeros, WarpGroup>(warp_group, range).run(searches);
    if (!choice.too_large()) return choice;
    if (WarpGroup::lane() == 0) atomicMin(&t.bad_rows().scale_too_large, static_cast<int>(row));
    return {};
}

__device__ inline void search_scales(const Tensors& t) {
    __shared__ alignas(16) float values[warps_a_block][searches ? room : 4];
    __shared__ float table[parts];
    for (int i = threadIdx.x; i < parts; i += threads) table[i] = part(i);
    __syncthreads();
    const int64 index = static_cast<int64>(blockIdx.x) * warps_a_block + threadIdx.x / 32;
    const int64 row = index / group_places;
    const int group = static_cast<int>(index % group_places);
    if (row >= places::whole_blocks(t.out) * places::block_rows) return;
    Choice choice;
    if (row < t.out && group < groups) choice = choose(t, row, group, values[threadIdx.x / 32], table);
    if (WarpGroup::lane() != 0) return;
    const int64 place = places::scale_place(row, group, group_places);
    reinterpret_cast<uint16*>(t.scales)[place] = choice.stored.bits;
    if constexpr (has_zeros) zeros_of(t)[place] = static_cast<uint8>(choice.zero);
}

__device__ inline void find_maxima(const Tensors& t) {
    const int64 index = static_cast<int64>(blockIdx.x) * warps_a_block + threadIdx.x / 32;
    const int64 row = index / spans;
    const int first = static_cast<int>(index % spans) * span;
    if (row >= t.out) return;
    const Extremes found = extremes_of(t.weight + row * t.weight_stride + first, min(span, in - first));
    if (WarpGroup::lane() != 0) return;
    if (!found.finite) {
        atomicMin(&t.bad_rows().not_finite, static_cast<int>(row));
        return;
    }
    // Magnitudes are in the order of their bits. Most are no new maximum where many share one.
    uint32* largest = t.maxima() + scale_number(row, first / width);
    const uint32 mine = __float_as_uint(fmaxf(-found.low, found.high)) & 0x7fffffffu;
    if (mine > *const_cast<volatile uint32*>(largest)) atomicMax(largest, mine);
}

__device__ inline float scale_8(const Tensors& t, int64 row, int column) {
    return scale_of_largest(__uint_as_float(t.maxima()[scale_number(row, column / width)]));
}

/// Two rows, 8 apart, whose codes at the same column stand side by side in a block.
struct RowPair {
    const Tensors& t;
    int64 first_row;

    __device__ uint32 code(int64 row, int column) const {
        const bool exists = row < t.out && column < in;
        if constexpr (is_w4) {
            if (row >= t.out) return no_zero;
            const int64 place = places::scale_place(row, has_groups ? column / width : 0, group_places);
            const int zero = has_zeros ? zeros_of(t)[place] : no_zero;
            if (!exists) return has_groups ? no_zero : zero;
            return code_4(t.value(row, column), to_float(t.scales[place]), zero);
        }
        return exists ? code_8(t.value(row, column), scale_8(t, row, column)) : 0;
    }
    __device__ uint32 lower(int column) const { return code(first_row, column); }
    __device__ uint32 upper(int column) const { return code(first_row + 8, column); }
};

/// Nibbles from the low end: columns c, c + 8, c + 1, c + 9, each of the lower row, then the upper.
__device__ inline uint32 word_w4(const RowPair& rows, int column) {
    uint32 word = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int c = column + i % 2 * 8 + i / 2;
        word |= (rows.lower(c) | rows.upper(c) << 4) << 8 * i;
    }
    return word;
}
/// Bytes: columns c, c + 1, each of the lower row, then the upper.
__device__ inline uint32 word_w8(const RowPair& rows, int column) {
    return rows.lower(column) | rows.upper(column) << 8 | rows.lower(column + 1) << 16 |
           rows.upper(column + 1) << 24;
}

__device__ inline void encode_block(const Tensors& t) {
    constexpr int blocks = static_cast<int>(places::whole_blocks(in));
    const int64 block_row = blockIdx.x / blocks;
    const int lane = threadIdx.x % 32;
    const RowPair rows{t, block_row * places::block_rows + threadIdx.x / 32 * 16 + lane / 4};
    const int column = static_cast<int>(blockIdx.x % blocks) * places::block_columns + lane % 4 * 2;
    uint4* to = reinterpret_cast<uint4*>(t.codes) + static_cast<int64>(blockIdx.x) * (is_w4 ? 128 : 256) +
                threadIdx.x;
    if constexpr (is_w4) {
        *to = make_uint4(word_w4(rows, column), word_w4(rows, column + 16), word_w4(rows, column + 32),
                         word_w4(rows, column + 48));
    } else {
#pragma unroll
        for (int half = 0; half < 2; ++half, to += 128) {
            const int c = column + 32 * half;
            *to = make_uint4(word_w8(rows, c), word_w8(rows, c + 8), word_w8(rows, c + 16),
                             word_w8(rows, c + 24));
        }
        if (column != 0) return;
        for (int64 row = rows.first_row; row < min(rows.first_row + 9, t.out); row += 8)
            t.scales[row] = from_float<Scale>(scale_8(t, row, 0));
    }
}

__device__ inline void encode_row(const Tensors& t) {
    constexpr int tiles = (in + row_threads * row_codes - 1) / (row_threads * row_codes);
    const int64 row = blockIdx.x / tiles;
    const int first = static_cast<int>(blockIdx.x % tiles) * (row_threads * row_codes) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < row_codes; ++i) {
        const int column = first + i * row_threads;
        if (column >= in) return;
        const float scale = scale_8(t, row, column);
        reinterpret_cast<uint8*>(t.codes)[row * in + column] = code_8(t.value(row, column), scale);
        if (column % width == 0 && (one_scale ? row == 0 : row % scaled_rows == 0))
            t.scales[scale_number(row, column / width)] = from_float<Scale>(scale);
    }
}

}  // namespace hone::quantize_weights::warps

extern "C" __global__ void __launch_bounds__(hone::quantize_weights::warps::clear_threads)
    quantize_weights_clear(HONE_PARAMETERS(quantize_weights_clear)) {
    const hone::quantize_weights::Tensors tensors{HONE_ARGUMENTS(quantize_weights_clear)};
    hone::quantize_weights::warps::clear(tensors, maxima);
}

extern "C" __global__ void __launch_bounds__(hone::quantize_weights::warps::threads)
    quantize_weights_scales(HONE_PARAMETERS(quantize_weights_scales)) {
    const hone::quantize_weights::Tensors tensors{HONE_ARGUMENTS(quantize_weights_scales)};
    using namespace hone::quantize_weights;
    if constexpr (is_w4)
        warps::search_scales(tensors);
    else
        warps::find_maxima(tensors);
}

extern "C" __global__ void __launch_bounds__(256)
    quantize_weights_encode(HONE_PARAMETERS(quantize_weights_encode)) {
    const hone::quantize_weights::Tensors tensors{HONE_ARGUMENTS(quantize_weights_encode)};
    using namespace hone::quantize_weights;
    if constexpr (is_packed)
        warps::encode_block(tensors);
    else
        warps::encode_row(tensors);
}
