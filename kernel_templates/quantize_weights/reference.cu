// Quantize weights, reference: one thread searches the scale of a group of w4a16, by itself and trial by
// trial; for other formats one block finds the largest magnitude of all that share a scale. Then a thread
// makes the codes of one byte, at the place that layout.cuh says. The rule of the search is that of
// scale_rule.cuh, since not a bit may differ; one thread makes its sums here. All outputs are
// float32: codes in blocks as the numbers of their bytes, of fp8 as the numbers that they are.
#include "quantize_weights/tensors.cuh"

namespace hone::quantize_weights::reference {

inline constexpr int maxima_threads = 1024;
inline constexpr int search_threads = 64;
inline constexpr int code_threads = 256;

/// The Group of scale_rule.cuh in the hands of a thread.
struct ThreadGroup {
    const Element* from;
    float factor;

    __device__ static constexpr int count() { return width; }
    __device__ static float part(int index) { return quantize_weights::part(index); }
    __device__ static Stored stored(float scale) { return stored_scale(scale); }

    /// Sums term(value in units) over the group.
    template <class Term>
    __device__ float sum(Term term) const {
        float total = 0.0f;
        for (int first = 0; first < width; first += piece) {
            float sums[lanes] = {};
            for (int i = first; i < min(width, first + piece); ++i)
                sums[i % lanes] += term(to_float(from[i]) * factor);
            for (int half = lanes / 2; half > 0; half /= 2) {
                for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
            }
            total += sums[0];
        }
        return total;
    }
    __device__ float error(const Codes& codes) const {
        const float inverse = 1.0f / codes.scale;
        return sum([&](float value) { return square_of_rest(value, inverse, codes); });
    }
    __device__ float best_unit(const Codes& codes) const {
        const float inverse = 1.0f / codes.scale;
        const auto code = [&](float value) {
            return nearest(product(value, inverse), codes.low, codes.high);
        };
        const float products = sum([&](float value) { return product(value, code(value)); });
        const float squares = sum([&](float value) { return product(code(value), code(value)); });
        return squares > 0.0f ? products / squares : 0.0f;
    }
    template <class TrialOf>
    __device__ void attempt(int trials, const TrialOf& trial_of, const Range& range, Choice& choice) const {
        for (int i = 0; i < trials; ++i) try_one(*this, range, trial_of(i), choice);
    }
};

__device__ inline Choice choose(const Tensors& t, int64 row, int group) {
    const Element* from = t.weight + row * t.weight_stride + static_cast<int64>(group) * width;
    float low = to_float(from[0]), high = low;
    for (int i = 0; i < width; ++i) {
        low = fminf(low, to_float(from[i]));
        high = fmaxf(high, to_float(from[i]));
    }
    if (fmaxf(-low, high) < smallest_magnitude) return {};
    const Range range = Range::of(low, high);
    const Choice choice = ScaleSearch<has_zeros, ThreadGroup>({from, range.factor()}, range).run(searches);
    return choice.too_large() ? Choice{} : choice;
}

__device__ inline void search_scales(const Tensors& t) {
    const int64 index = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64 row = index / group_places;
    const int group = static_cast<int>(index % group_places);
    if (row >= places::whole_blocks(t.out) * places::block_rows) return;
    Choice choice;
    if (row < t.out && group < groups) choice = choose(t, row, group);
    const int64 place = places::scale_place(row, group, group_places);
    t.scales[place] = choice.stored.scale;
    if constexpr (has_zeros) t.zeros[place] = static_cast<float>(choice.zero);
}

/// Rows and columns that share scale number blockIdx.x.
__device__ inline void find_scale(const Tensors& t) {
    const int64 number = blockIdx.x;
    const int64 first_row = one_scale ? 0 : number / groups * scaled_rows;
    const int64 rows = one_scale ? t.out : min(static_cast<int64>(scaled_rows), t.out - first_row);
    const int first_column = one_scale ? 0 : static_cast<int>(number % groups) * width;
    float largest = 0.0f;
    for (int64 i = threadIdx.x; i < rows * width; i += maxima_threads) {
        const int column = first_column + static_cast<int>(i % width);
        largest = fmaxf(largest, fabsf(t.value(first_row + i / width, column)));
    }
    __shared__ float maxima[maxima_threads];
    maxima[threadIdx.x] = largest;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int i = 1; i < maxima_threads; ++i) largest = fmaxf(largest, maxima[i]);
    t.scales[number] = scale_of_largest(largest);
}

/// The code of 4 bits, padding included.
__device__ inline uint32 nibble(const Tensors& t, int64 row, int column) {
    if (row >= t.out || (column >= in && has_groups)) return no_zero;
    const int64 place = places::scale_place(row, has_groups ? column / width : 0, group_places);
    const int zero = has_zeros ? static_cast<int>(t.zeros[place]) : no_zero;
    return column < in ? code_4(t.value(row, column), t.scales[place], zero) : zero;
}

__device__ inline void write_code(const Tensors& t, int64 row, int column) {
    if constexpr (is_w4) {
        if (row % 16 >= 8) return;  // these share bytes with the rows 8 before them
        const uint32 byte = nibble(t, row, column) | nibble(t, row + 8, column) << 4;
        t.codes[places::place_w4(row, column, in).byte] = to_float(static_cast<int8>(byte));
        return;
    }
    const bool exists = row < t.out && column < in;
    const int64 number = exists ? scale_number(row, column / width) : 0;
    const uint8 code = exists ? code_8(t.value(row, column), t.scales[number]) : 0;
    const int64 byte = is_packed ? places::place_w8(row, column, in).byte : row * in + column;
    t.codes[byte] = is_fp8 ? to_float(fp8{code}) : to_float(static_cast<int8>(code));
}

__device__ inline void write_codes(const Tensors& t) {
    constexpr int columns = is_packed ? static_cast<int>(places::whole_blocks(in)) * 64 : in;
    constexpr int tiles = (columns + code_threads - 1) / code_threads;
    const int column = static_cast<int>(blockIdx.x % tiles) * code_threads + threadIdx.x;
    if (column < columns) write_code(t, blockIdx.x / tiles, column);
}

}  // namespace hone::quantize_weights::reference

extern "C" __global__ void __launch_bounds__(hone::quantize_weights::is_w4
                                                 ? hone::quantize_weights::reference::search_threads
                                                 : hone::quantize_weights::reference::maxima_threads)
    quantize_weights_reference_scales(HONE_PARAMETERS(quantize_weights_reference_scales)) {
    const hone::quantize_weights::Tensors tensors{HONE_ARGUMENTS(quantize_weights_reference_scales)};
    using namespace hone::quantize_weights;
    if constexpr (is_w4)
        reference::search_scales(tensors);
    else
        reference::find_scale(tensors);
}

extern "C" __global__ void __launch_bounds__(256)
    quantize_weights_reference_codes(HONE_PARAMETERS(quantize_weights_reference_codes)) {
    const hone::quantize_weights::Tensors tensors{HONE_ARGUMENTS(quantize_weights_reference_codes)};
    hone::quantize_weights::reference::write_codes(tensors);
}
