// Attention of many queries, reference: a block computes 64 queries of a head. For 64 keys at a time:
//   scores   16 columns at a time of queries and keys pass through shared memory as floats; a thread adds
//            their products for 4 x 4 scores in float32, and those short sums in double,
//   weights  exp(score - greatest so far of the row) go to shared memory, the sums so far are scaled,
//   values   64 columns at a time pass through shared memory as floats; a thread adds 64 products in float32
//            and those sums in double.
// Keys that a query does not see have weight 0, rows outside of the sequence count as zeros. out and lse are
// float32 arrays without padding; lse in double until it is stored.
#include "attention_prefill/problem.cuh"

namespace hone::attention_prefill::reference {

inline constexpr int tile = 64;
inline constexpr int depth = 16;
inline constexpr int threads = 256;
inline constexpr int panels = (head_dim + tile - 1) / tile;

/// A thread has rows 16 i + threadIdx.x / 16 and columns 16 j + threadIdx.x % 16 of a tile.
__device__ inline int own_row(int i) { return 16 * i + static_cast<int>(threadIdx.x) / 16; }
__device__ inline int own_column(int j) { return 16 * j + static_cast<int>(threadIdx.x) % 16; }

/// Over the 16 threads that share rows.
__device__ inline float row_maximum(float value) {
    for (int distance = 8; distance > 0; distance /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
    return value;
}
__device__ inline double row_sum(double value) {
    for (int distance = 8; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

struct Memory {
    float queries[tile][depth + 1];
    float keys[tile][depth + 1];
    float values[tile][tile];
    float weights[tile][tile + 1];
};

class Block {
  public:
    __device__ Block(const Call& call, Memory& memory, const Sequence& sequence, int head, int row)
        : call_(call), memory_(memory), sequence_(sequence), head_(head), row_(row) {}

    __device__ void run() {
        const int last = min(row_ + tile, sequence_.q_len) - 1;
        const int end = sequence_.end(last);
#pragma unroll 1
        for (int column = sequence_.begin(row_) / tile * tile; column < end; column += tile) {
            float scores[4][4];
            multiply_keys(column, scores);
            weigh(column, scores);
#pragma unroll
            for (int panel = 0; panel < panels; ++panel) multiply_values(column, panel, results_[panel]);
        }
        store();
    }

  private:
    /// Scores before the mask.
    __device__ void multiply_keys(int column, float (&scores)[4][4]) {
        double sums[4][4] = {};
#pragma unroll 1
        for (int first = 0; first < head_dim; first += depth) {
            __syncthreads();
            for (int i = threadIdx.x; i < tile * depth; i += threads) {
                const int row = i / depth;
                const int c = first + i % depth;
                const bool has_query = c < head_dim && row_ + row < sequence_.q_len;
                const bool has_key = c < head_dim && column + row < sequence_.kv_len;
                memory_.queries[row][i % depth] =
                    has_query ? to_float(call_.query(sequence_, head_, row_ + row)[c]) : 0.0f;
                memory_.keys[row][i % depth] =
                    has_key ? to_float(call_.key(sequence_, head_, column + row)[c]) : 0.0f;
            }
            __syncthreads();
            float part[4][4] = {};
#pragma unroll 4
            for (int c = 0; c < depth; ++c)
                for (int i = 0; i < 4; ++i)
                    for (int j = 0; j < 4; ++j)
                        part[i][j] =
                            fmaf(memory_.queries[own_row(i)][c], memory_.keys[own_column(j)][c], part[i][j]);
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sums[i][j] += part[i][j];
        }
        for (int i = 0; i < 4; ++i) {
            for (int j = 0; j < 4; ++j) {
                scores[i][j] = static_cast<float>(sums[i][j] * call_.score_scale(head_));
                if (has_softcap) scores[i][j] = call_.softcap * tanhf(scores[i][j] / call_.softcap);
            }
        }
    }

    __device__ bool sees(int row, int column) const {
        return column >= sequence_.begin(row) && column < sequence_.end(row);
    }

    __device__ void weigh(int column, float (&scores)[4][4]) {
        for (int i = 0; i < 4; ++i) {
            float greatest = greatest_[i];
            for (int j = 0; j < 4; ++j) {
                if (!sees(row_ + own_row(i), column + own_column(j))) scores[i][j] = minus_infinity();
                greatest = fmaxf(greatest, scores[i][j]);
            }
            greatest = row_maximum(greatest);
            const bool empty = greatest == minus_infinity();
            const double factor = empty ? 0.0 : static_cast<double>(expf(greatest_[i] - greatest));
            greatest_[i] = greatest;
            double sum = 0.0;
            for (int j = 0; j < 4; ++j) {
                const float weight = empty ? 0.0f : expf(scores[i][j] - greatest);
                memory_.weights[own_row(i)][own_column(j)] = weight;
                sum += weight;
            }
            sum_[i] = sum_[i] * factor + row_sum(sum);
            for (int panel = 0; panel < panels; ++panel)
                for (int j = 0; j < 4; ++j) results_[panel][i][j] *= factor;
        }
    }

    __device__ void multiply_values(int column, int panel, double (&results)[4][4]) {
        __syncthreads();
        for (int i = threadIdx.x; i < tile * tile; i += threads) {
            const int key = column + i / tile;
            const int c = panel * tile + i % tile;
            const bool exists = c < head_dim && key >= sequence_.first_key() && key < sequence_.kv_len;
            memory_.values[i / tile][i % tile] =
                exists ? to_float(call_.value(sequence_, head_, key)[c]) : 0.0f;
        }
        __syncthreads();
        float part[4][4] = {};
#pragma unroll 4
        for (int key = 0; key < tile; ++key)
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j)
                    part[i][j] = fmaf(memory_.weights[own_row(i)][key], memory_.values[key][own_column(j)],
                                      part[i][j]);
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) results[i][j] += part[i][j];
    }

    __device__ void store() const {
        for (int i = 0; i < 4; ++i) {
            const int row = row_ + own_row(i);
            if (row >= sequence_.q_len) continue;
            const int64 token =
                packed ? sequence_.q_start + row : static_cast<int64>(sequence_.index) * call_.q_len + row;
            const bool empty = greatest_[i] == minus_infinity();
            // All relative to the greatest score, or to the sink where there is none.
            const double top = empty && has_sinks ? call_.sinks[head_] : greatest_[i];
            double sum = sum_[i];
            if constexpr (has_sinks) sum += exp(call_.sinks[head_] - top);
            for (int panel = 0; panel < panels; ++panel) {
                for (int j = 0; j < 4; ++j) {
                    const int column = panel * tile + own_column(j);
                    if (column >= head_dim) continue;
                    call_.out[(token * heads + head_) * head_dim + column] =
                        empty ? 0.0f
                              : static_cast<float>(results_[panel][i][j] / sum * call_.value_scale(head_));
                }
            }
            if (has_lse && threadIdx.x % 16 == 0)
                *call_.lse_of(sequence_, head_, row) =
                    empty ? (has_sinks ? call_.sinks[head_] : minus_infinity())
                          : static_cast<float>(top + log(sum));
        }
    }

    const Call& call_;
    Memory& memory_;
    Sequence sequence_;
    int head_;
    int row_;
    float greatest_[4] = {minus_infinity(), minus_infinity(), minus_infinity(), minus_infinity()};
    double sum_[4] = {};
    double results_[panels][4][4] = {};
};

__device__ inline void run(const Call& call) {
    __shared__ Memory memory;
    const int rows = (call.q_len + tile - 1) / tile;
    const int slot = static_cast<int>(blockIdx.x) / rows;
    const int row = static_cast<int>(blockIdx.x) % rows * tile;
    const Sequence sequence = call.sequence(slot / heads);
    if (row < sequence.q_len) Block(call, memory, sequence, slot % heads, row).run();
}

}  // namespace hone::attention_prefill::reference

extern "C" __global__ void __launch_bounds__(256)
    attention_prefill_reference(HONE_PARAMETERS(attention_prefill_reference)) {
    const hone::attention_prefill::Call call{HONE_ARGUMENTS(attention_prefill_reference)};
    hone::attention_prefill::reference::run(call);
}
