// A group of w4a16 in the hands of a warp: the Group of scale_rule.cuh. Its values, in units, stand in the
// warp's part of shared memory: all of them, up to 1024, or a piece of so many at a time, which is read again
// from global memory (that is, from L1 or L2) for each round of trials.
//
// Trials that are many go one a lane: a lane adds up all 32 lanes of the sum by itself, in registers, and
// reads values four at a time, which the whole warp does at one address. A single trial goes one lane of the
// sum a lane. Both add in the order of the rule, so that they leave the same bits.
#pragma once

#include "device/reduce.cuh"
#include "quantize_weights/tensors.cuh"

namespace hone::quantize_weights {

inline constexpr unsigned all_lanes = 0xffffffffu;
inline constexpr bool is_one_piece = width <= piece;
/// Values that a warp has room for.
inline constexpr int room = is_one_piece ? (width + lanes - 1) / lanes * lanes : piece;
inline constexpr int parts = part_count(width);

/// Sum of the same lane's numbers, in the order of the rule; every lane gets it.
__device__ inline float sum_lanes(float value) { return reduce_lanes<Sum, lanes>(value); }

/// The same of all lanes' numbers in one thread. The loops have bounds that let them be unrolled whole.
__device__ inline float pairwise_sum(float (&sums)[lanes]) {
#pragma unroll
    for (int level = 1; level <= 5; ++level) {
#pragma unroll
        for (int i = 0; i < lanes / 2; ++i) {
            const int half = lanes >> level;
            if (i < half) sums[i] += sums[i + half];
        }
    }
    return sums[0];
}

struct WarpGroup {
    const Element* from;      ///< the group's first element
    float factor;             ///< takes values to units
    float* values;            ///< [room], of this warp; aligned to 16 bytes
    const float* part_table;  ///< [parts]

    __device__ static int lane() { return threadIdx.x % lanes; }
    __device__ static constexpr int count() { return width; }
    __device__ float part(int index) const { return part_table[index]; }
    __device__ static Stored stored(float scale) { return stored_scale(scale); }

    /// The values from `first` on into shared memory, with zeros behind the last.
    __device__ void stage(int first) const {
        __syncwarp();
#pragma unroll 4
        for (int i = lane(); i < room; i += lanes)
            values[i] = first + i < width ? to_float(from[first + i]) * factor : 0.0f;
        __syncwarp();
    }

    /// Calls visit(values of it) for each piece, staged.
    template <class Visit>
    __device__ void for_each_piece(Visit visit) const {
        if constexpr (is_one_piece) {
            visit(room);
        } else {
            for (int first = 0; first < width; first += piece) {
                stage(first);
                visit(min(piece, (width - first + lanes - 1) / lanes * lanes));
            }
        }
    }

    __device__ float error(const Codes& codes) const {
        const float inverse = 1.0f / codes.scale;
        float sum = 0.0f;
        for_each_piece([&](int end) {
            float lane_sum = 0.0f;
            for (int i = lane(); i < end; i += lanes)
                lane_sum = __fadd_rn(lane_sum, square_of_rest(values[i], inverse, codes));
            sum += sum_lanes(lane_sum);
        });
        return sum;
    }

    __device__ float best_unit(const Codes& codes) const {
        const float inverse = 1.0f / codes.scale;
        float products = 0.0f, squares = 0.0f;
        for_each_piece([&](int end) {
            float lane_products = 0.0f, lane_squares = 0.0f;
            for (int i = lane(); i < end; i += lanes) {
                const float code = nearest(product(values[i], inverse), codes.low, codes.high);
                lane_products += product(values[i], code);
                lane_squares += product(code, code);
            }
            products += sum_lanes(lane_products);
            squares += sum_lanes(lane_squares);
        });
        return squares > 0.0f ? products / squares : 0.0f;
    }

    /// The error of this lane's own codes.
    __device__ float lone_error(const Codes& codes) const {
        const float inverse = 1.0f / codes.scale;
        float sum = 0.0f;
        for_each_piece([&](int end) {
            float sums[lanes] = {};
#pragma unroll 1
            for (int first = 0; first < end; first += lanes) {
#pragma unroll
                for (int i = 0; i < lanes; i += 4) {
                    const float4 four = *reinterpret_cast<const float4*>(values + first + i);
                    sums[i] += square_of_rest(four.x, inverse, codes);
                    sums[i + 1] += square_of_rest(four.y, inverse, codes);
                    sums[i + 2] += square_of_rest(four.z, inverse, codes);
                    sums[i + 3] += square_of_rest(four.w, inverse, codes);
                }
            }
            sum += pairwise_sum(sums);
        });
        return sum;
    }

    /// 32 trials at once; of several that leave equally little the first counts, as where they go one by one.
    template <class TrialOf>
    __device__ void attempt(int trials, const TrialOf& trial_of, const Range& range, Choice& choice) const {
#pragma unroll 1
        for (int first = 0; first < trials; first += lanes) {
            const bool exists = first + lane() < trials;
            const Trial trial = trial_of(exists ? first + lane() : 0);
            const Stored scale = stored(range.scale_of(trial.unit));
            const bool is_scale = exists && scale.scale != 0.0f && is_finite(scale.scale);
            const float unit = is_scale ? range.unit_of(scale.scale) : 1.0f;
            const float tried = lone_error(codes_of(unit, trial.zero));
            const float mine = is_scale ? tried : infinity;
            const float least = -reduce_lanes<Max, lanes>(-mine);
            if (!(least < choice.error)) continue;
            const int winner = __ffs(__ballot_sync(all_lanes, mine == least)) - 1;
            const uint32 bits = __shfl_sync(all_lanes, static_cast<uint32>(scale.bits), winner);
            choice.stored = {static_cast<uint16>(bits), __shfl_sync(all_lanes, scale.scale, winner)};
            choice.zero = __shfl_sync(all_lanes, trial.zero, winner);
            choice.error = least;
        }
    }
};

}  // namespace hone::quantize_weights
