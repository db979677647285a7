// Results of tensor-core products (wgmma/product.cuh, mma_tiles/product.cuh) on their way out, two at a time
// as a thread holds them.
#pragma once

#include "device/packet.cuh"
#include "linear/epilogue.cuh"

namespace hone::linear {

/// Whether rows of results begin at multiples of 16 bytes, so that two neighbouring columns are an access.
__device__ constexpr bool are_in_pairs() { return out % 8 == 0; }

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
    float* workspace;  ///< wgmma/partials.cuh
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
        if constexpr (!are_in_pairs()) {
            first = finish(at.token, at.column, first);
            second = finish(at.token, at.column + 1, second);
            return;
        }
        const int column = whole ? at.column : min(at.column, out - 2);
        activate_columns(column, first, second);
        if constexpr (has_residual) add(residual_of(min(at.token, tokens - 1), column), first, second);
    }
    /// The same without the residual, and this, of columns and a token that exist.
    __device__ void activate_columns(int column, float& first, float& second) const {
        if constexpr (has_bias) add(load_packet<Element, 2>(bias + column), first, second);
        first = activate(first);
        second = activate(second);
    }
    __device__ Packet<Element, 2> residual_of(int token, int column) const {
        return load_packet<Element, 2>(residual + token * residual_stride + column);
    }
    __device__ static void add(const Packet<Element, 2>& pair, float& first, float& second) {
        first += to_float(pair.elements[0]);
        second += to_float(pair.elements[1]);
    }

    template <bool swapped>
    __device__ void store(Pair at, uint32 pair) const {
        if constexpr (swapped) {
            const Element low{static_cast<uint16>(pair)};
            const Element high{static_cast<uint16>(pair >> 16)};
            if (at.column >= out) return;
            if (at.token < tokens) result[at.token * out_stride + at.column] = low;
            if (at.token + 1 < tokens) result[(at.token + 1) * out_stride + at.column] = high;
        } else if constexpr (!are_in_pairs()) {
            if (at.token >= tokens) return;
            Element* const to = result + at.token * out_stride + at.column;
            if (at.column < out) to[0] = Element{static_cast<uint16>(pair)};
            if (at.column + 1 < out) to[1] = Element{static_cast<uint16>(pair >> 16)};
        } else {
            if (at.token < tokens && at.column < out)
                *reinterpret_cast<uint32*>(result + at.token * out_stride + at.column) = pair;
        }
    }
};

}  // namespace hone::linear
