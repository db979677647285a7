// Results of the tensor-core product (gemm.cuh) on their way out, two at a time as a thread holds them, and
// the second launch of a split product, which adds partial sums.
#pragma once

#include "device/sync.cuh"
#include "linear/epilogue.cuh"

namespace hone::linear::gemm {

/// Two results side by side: columns `column`, `column + 1` of one token, or swapped: one column of tokens
/// `token`, `token + 1`.
struct Pair {
    int token;
    int column;
};

struct Results {
    const Element* bias;
    const Element* residual;
    Element* result;
    float* partials;  ///< [split, products, tokens, out]
    int tokens;
    int64 residual_stride;
    int64 out_stride;

    /// activation(sum + bias) + residual; what stands outside of the result is not read.
    __device__ float finish(int token, int column, float sum) const {
        if (token >= tokens || column >= out) return sum;
        if constexpr (has_bias) sum += to_float(bias[column]);
        sum = activate(sum);
        if constexpr (has_residual)
            sum += to_float(load_packet<Element, 1>(residual + token * residual_stride + column).elements[0]);
        return sum;
    }
    /// Two columns of one token, the first even. Where they stand outside of the result something else is
    /// read. `whole`: no column stands outside, known at compile time; addresses then differ by constants.
    template <bool whole>
    __device__ void finish_columns(Pair at, float& first, float& second) const {
        const int column = whole ? at.column : min(at.column, out - 2);
        if constexpr (has_bias) add_pair(bias + column, first, second);
        first = activate(first);
        second = activate(second);
        if constexpr (has_residual)
            add_pair(residual + min(at.token, tokens - 1) * residual_stride + column, first, second);
    }

    template <bool swapped>
    __device__ void store(Pair at, uint32 pair) const {
        if constexpr (swapped) {
            const Element low{static_cast<uint16>(pair)};
            const Element high{static_cast<uint16>(pair >> 16)};
            if (at.column >= out) return;
            if (at.token < tokens) result[at.token * out_stride + at.column] = low;
            if (at.token + 1 < tokens) result[(at.token + 1) * out_stride + at.column] = high;
        } else {
            if (at.token < tokens && at.column < out)
                *reinterpret_cast<uint32*>(result + at.token * out_stride + at.column) = pair;
        }
    }

    template <bool swapped>
    __device__ void store_partial(Pair at, int part, int product, float first, float second) const {
        float* to = partials + (static_cast<int64>(part) * products + product) * tokens * out +
                    static_cast<int64>(at.token) * out + at.column;
        if (at.column >= out) return;
        if constexpr (swapped) {
            if (at.token < tokens) to[0] = first;
            if (at.token + 1 < tokens) to[out] = second;
        } else {
            if (at.token < tokens) *reinterpret_cast<float2*>(to) = {first, second};
        }
    }

  private:
    __device__ static void add_pair(const Element* from, float& first, float& second) {
        const auto pair = load_packet<Element, 2>(from);
        first += to_float(pair.elements[0]);
        second += to_float(pair.elements[1]);
    }
};

/// Threads of a block of the second launch, and results a thread.
inline constexpr int combine_threads = 256;
inline constexpr int combine_width = 4;

/// Four sums, the parts added in order: the result does not depend on which block came first.
__device__ inline float4 sum_partials(const float* partials, int product, int64 index, int64 count) {
    float4 words[Tuned::split];
#pragma unroll
    for (int part = 0; part < Tuned::split; ++part) {
        words[part] =
            *reinterpret_cast<const float4*>(partials + (part * products + product) * count + index);
    }
    float4 sum = words[0];
#pragma unroll
    for (int part = 1; part < Tuned::split; ++part) {
        sum.x += words[part].x;
        sum.y += words[part].y;
        sum.z += words[part].z;
        sum.w += words[part].w;
    }
    return sum;
}

/// Data's way: partial sums (level 2) -> registers -> global.
__device__ inline void combine(const Results& results) {
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    const int64 count = static_cast<int64>(results.tokens) * out;
    const int64 index = (static_cast<int64>(blockIdx.x) * combine_threads + threadIdx.x) * combine_width;
    if (index >= count) return;
    float4 sum = sum_partials(results.partials, 0, index, count);
    const Pair at{static_cast<int>(index / out), static_cast<int>(index % out)};
    if constexpr (gated) {
        const float4 up = sum_partials(results.partials, 1, index, count);
        sum = {join_gated(sum.x, up.x), join_gated(sum.y, up.y), join_gated(sum.z, up.z),
               join_gated(sum.w, up.w)};
    } else {
        results.finish_columns<true>(at, sum.x, sum.y);
        results.finish_columns<true>({at.token, at.column + 2}, sum.z, sum.w);
    }
    store_packet(results.result + at.token * results.out_stride + at.column,
                 pack<Element>({sum.x, sum.y, sum.z, sum.w}));
}

}  // namespace hone::linear::gemm
