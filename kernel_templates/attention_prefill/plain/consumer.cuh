// The threads of variant plain (kernel.cu): each multiplies its queries with the keys and values in shared
// memory.
#pragma once

#include "attention_prefill/plain/feeder.cuh"
#include "attention_prefill/sink.cuh"
#include "device/math.cuh"

namespace hone::attention_prefill::cuda_cores {

inline constexpr int thread_m = geometry.thread_m;
inline constexpr int thread_n = geometry.thread_n();
inline constexpr int warp_rows = 2 * thread_m;
inline constexpr int groups = geometry.groups();
inline constexpr int width = geometry.width();

/// Over the 16 lanes that share rows.
__device__ inline float row_maximum(float x) {
#pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, distance));
    return x;
}
__device__ inline float row_sum(float x) {
#pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, distance);
    return x;
}

__device__ inline void read_vector(const float* from, float (&to)[4]) {
    const float4 v = *reinterpret_cast<const float4*>(from);
    to[0] = v.x;
    to[1] = v.y;
    to[2] = v.z;
    to[3] = v.w;
}
__device__ inline void read_vector(const float* from, float (&to)[2]) {
    const float2 v = *reinterpret_cast<const float2*>(from);
    to[0] = v.x;
    to[1] = v.y;
}

class Consumer {
  public:
    __device__ Consumer(const Call& call, const Tile& tile, float* memory)
        : sequence_(tile.sequence),
          row_(tile.row + first_row()),
          lane_(threadIdx.x % lanes),
          queries_(memory + own_row() * geometry.query_pitch()),
          weights_(memory + geometry.weights_at() + own_row() * geometry.weight_pitch()),
          scale_((has_softcap ? call.softcap : call.score_scale(tile.head)) * 1.4426950408889634f),
          cap_scale_(has_softcap ? 2.0f * 1.4426950408889634f * call.score_scale(tile.head) / call.softcap
                                 : 0.0f) {
#pragma unroll
        for (int i = 0; i < thread_m; ++i) {
            top_[i] = minus_infinity();
            sum_[i] = 0.0f;
        }
    }

    /// Whether one of the warp's queries sees one of the keys from `column` on.
    __device__ bool sees(int column) const {
        return column < sequence_.end(row_ + warp_rows - 1) && column + tile_n > sequence_.begin(row_);
    }

    __device__ void clear_scores() {
#pragma unroll
        for (int i = 0; i < thread_m; ++i) {
#pragma unroll
            for (int j = 0; j < thread_n; ++j) scores_[i][j] = 0.0f;
        }
    }

    /// Adds the products over the columns of step `step`, whose keys stand in `keys`.
    __device__ void multiply_keys(const float* keys, int step) {
        const float* queries = queries_ + step * geometry.key_columns();
#pragma unroll 1
        for (int c = 0; c < geometry.key_columns(); c += 4) {
            float query[thread_m][4];
#pragma unroll
            for (int i = 0; i < thread_m; ++i)
                read_vector(queries + 2 * i * geometry.query_pitch() + c, query[i]);
#pragma unroll
            for (int j = 0; j < thread_n; ++j) {
                float key[4];
                read_vector(keys + (lane_ + j * lanes) * geometry.key_pitch() + c, key);
#pragma unroll
                for (int i = 0; i < thread_m; ++i) {
#pragma unroll
                    for (int e = 0; e < 4; ++e) scores_[i][j] = fmaf(query[i][e], key[e], scores_[i][j]);
                }
            }
        }
    }

    /// Scores of the keys from `column` on become weights in shared memory; what was added up before is
    /// brought to the new maximum.
    __device__ void weigh(int column) {
        __syncwarp();  // the last block's weights have been read
#pragma unroll
        for (int i = 0; i < thread_m; ++i) {
            const int query = row_ + 2 * i + own_row() % 2;
            const int end = sequence_.end(query) - column;
            const int begin = sequence_.begin(query) - column;
            float greatest = top_[i];
#pragma unroll
            for (int j = 0; j < thread_n; ++j) {
                const int key = lane_ + j * lanes;
                float& score = scores_[i][j];
                if constexpr (has_softcap) score = capped(score);
                if (key >= end || (windowed && key < begin)) score = minus_infinity();
                greatest = fmaxf(greatest, score);
            }
            greatest = row_maximum(greatest);
            // Differences of a row that has seen nothing must not be NaN.
            const float offset = greatest == minus_infinity() ? 0.0f : greatest * scale_;
            const float factor = fast_exp2(fmaf(top_[i], scale_, -offset));
            top_[i] = greatest;
            sum_[i] *= factor;
#pragma unroll
            for (int j = 0; j < thread_n; ++j) {
                const float weight = fast_exp2(fmaf(scores_[i][j], scale_, -offset));
                sum_[i] += weight;
                weights_[2 * i * geometry.weight_pitch() + lane_ + j * lanes] = weight;
            }
#pragma unroll
            for (int g = 0; g < groups; ++g) {
#pragma unroll
                for (int e = 0; e < width; ++e) results_[i][g][e] *= factor;
            }
        }
        __syncwarp();
    }

    /// Adds the weights' products with the rows of step `step`, which stand in `values`.
    __device__ void multiply_values(const float* values, int step) {
        const float* weights = weights_ + step * value_rows;
#pragma unroll 1
        for (int j = 0; j < value_rows; j += 4) {
            float weight[thread_m][4];
#pragma unroll
            for (int i = 0; i < thread_m; ++i)
                read_vector(weights + 2 * i * geometry.weight_pitch() + j, weight[i]);
#pragma unroll
            for (int e = 0; e < 4; ++e) {
#pragma unroll
                for (int g = 0; g < groups; ++g) {
                    float value[width];
                    read_vector(values + (j + e) * geometry.value_pitch() + (g * lanes + lane_) * width,
                                value);
#pragma unroll
                    for (int i = 0; i < thread_m; ++i) {
#pragma unroll
                        for (int w = 0; w < width; ++w)
                            results_[i][g][w] = fmaf(weight[i][e], value[w], results_[i][g][w]);
                    }
                }
            }
        }
    }

    __device__ void store(const Call& call, const Tile& tile) const {
#pragma unroll
        for (int i = 0; i < thread_m; ++i) {
            const int query = row_ + 2 * i + own_row() % 2;
            float sum = row_sum(sum_[i]);
            float top = top_[i];
            float factor = 1.0f;
            if constexpr (has_sinks) {
                top *= scale_;
                factor = include_sink(call, tile.head, top, sum);
            }
            const bool empty = top == minus_infinity();
            const float inverse = empty ? 0.0f : factor * call.value_scale(tile.head) / sum;
            if (query >= sequence_.q_len) continue;
            Element* out = call.result(sequence_, tile.head, query);
#pragma unroll
            for (int g = 0; g < groups; ++g)
                store_columns(out, (g * lanes + lane_) * width, results_[i][g], inverse);
            if (has_lse && lane_ == 0)
                *call.lse_of(sequence_, tile.head, query) =
                    empty ? top : ((has_sinks ? top : top * scale_) + log2f(sum)) * 0.6931471805599453f;
        }
    }

  private:
    /// In the tile: the warp's first row; the thread's first, its others are two further on each.
    __device__ static int first_row() { return threadIdx.x / 32 * warp_rows; }
    __device__ static int own_row() { return first_row() + threadIdx.x / lanes % 2; }

    /// tanh(scale * score / cap), which is 1 - 2 / (1 + e^(2 x)); the factor `cap` is in scale_.
    __device__ float capped(float score) const {
        return fmaf(-2.0f, fast_reciprocal(1.0f + fast_exp2(score * cap_scale_)), 1.0f);
    }

    __device__ static void store_columns(Element* row, int column, const float (&values)[width],
                                         float factor) {
        if (column >= head_dim) return;
        float scaled[width];
#pragma unroll
        for (int e = 0; e < width; ++e) scaled[e] = values[e] * factor;
        if constexpr (vector > 1) {
            store_packet(row + column, pack<Element>(scaled));
        } else {
#pragma unroll
            for (int e = 0; e < width; ++e)
                if (column + e < head_dim) row[column + e] = from_float<Element>(scaled[e]);
        }
    }

    Sequence sequence_;
    int row_;  ///< the warp's first query
    int lane_;
    const float* queries_;  ///< the thread's first row of them
    float* weights_;
    float scale_;
    float cap_scale_;
    float top_[thread_m];
    float sum_[thread_m];  ///< sums of the thread's own weights
    float scores_[thread_m][thread_n];
    float results_[thread_m][groups][width] = {};
};

}  // namespace hone::attention_prefill::cuda_cores
