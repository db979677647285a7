// Quantized linear, variant walk (sm_90), for few tokens: resident blocks walk over the weight, their warps
// draw it straight into registers without a pause between one group of rows and the next.
//
// Data's way: codes and scales of groups from global memory into registers, `unroll` units of 16 rows x 128
// columns a warp; the next is asked for where one has just been multiplied, across groups of rows too. The
// first before anything else, also before the wait for the kernel that writes x. x once into shared memory
// (x.cuh), from there by ldmatrix. Integer codes -> mma.sync with integers: x's codes, or the digits of x,
// whose sums are exact and scaled in float32 unit by unit or, with groups, group by group; so 4-bit codes
// cost three instructions for eight. fp8 codes -> fp16 -> mma.sync. The warps' sums of 16 rows meet in one of
// two buffers in shared memory; a finishing warp adds them in order and makes results of them while the
// others are at the next rows.
//
// Barriers: the block's when x is there; full[buffer], one arrival of each multiplying thread; empty[buffer],
// one of each finishing thread.
#include "device/mbarrier.cuh"
#include "quantized_linear/walk/units.cuh"
#include "quantized_linear/walk/x.cuh"

namespace hone::quantized_linear::walk {

/// Sums of units, or of groups of columns, are scaled.
inline constexpr bool folds = is_packed || has_blocks;
inline constexpr bool scales_rows = has_groups || has_blocks;
inline constexpr int sets = geometry.sets;
static_assert(is_packed || out % WalkGeometry::rows == 0, "a group's rows exist");

using Parts = Part[products][column_blocks];
using Sums = Conditional<folds, MmaSums, Part>::type[products][column_blocks];

/// What the sums of a set begin with: what x's digits are times, more than codes above 8.
__device__ inline void begin_set(const X& x, int unit, int set, const Unit (&weights)[products],
                                 Parts& parts) {
#pragma unroll
    for (int n = 0; n < column_blocks; ++n) {
        int digit_sums[2] = {0, 0};
        if constexpr (has_zeros) x.digit_sums(unit, set, n, digit_sums);
#pragma unroll
        for (int product = 0; product < products; ++product) {
            parts[product][n] = {};
            if constexpr (has_zeros) {
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    parts[product][n].values[i] = weights[product].excess(set, i / 2) * digit_sums[i % 2];
            }
        }
    }
}

__device__ inline void end_set(const float (&of_columns)[column_blocks][2], int set,
                               const Unit (&weights)[products], const Parts& parts, Sums& sums) {
#pragma unroll
    for (int product = 0; product < products; ++product) {
        float of_rows[2];
        if constexpr (scales_rows) weights[product].scales(set, of_rows);
#pragma unroll
        for (int n = 0; n < column_blocks; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float factor = of_columns[n][i % 2];
                const float part = static_cast<float>(parts[product][n].values[i]);
                auto& sum = sums[product][n].values[i];
                sum = scales_rows ? fmaf(part * factor, of_rows[i / 2], sum) : fmaf(part, factor, sum);
            }
        }
    }
}

/// Product number `step` of a unit; two of them take 64 bytes of x, which are in `words`.
template <class To>
__device__ inline void multiply_step(const X& x, int unit, int step, uint32 (&words)[column_blocks][4],
                                     const Unit (&weights)[products], To& to) {
    uint32 b[column_blocks][2];
#pragma unroll
    for (int n = 0; n < column_blocks; ++n) {
        if (step % 2 == 0) x.load(words[n], unit, step / 2, n);
        b[n][0] = words[n][step % 2 * 2];
        b[n][1] = words[n][step % 2 * 2 + 1];
    }
#pragma unroll
    for (int product = 0; product < products; ++product) weights[product].multiply(to[product], step, b);
}

__device__ inline void multiply(const X& x, int unit, const Unit (&weights)[products], Sums& sums) {
    uint32 words[column_blocks][4];
    if constexpr (!folds) {
#pragma unroll
        for (int step = 0; step < Unit::steps; ++step) multiply_step(x, unit, step, words, weights, sums);
    } else {
        float of_columns[column_blocks][2];
#pragma unroll
        for (int n = 0; n < column_blocks; ++n) x.scales(unit, n, of_columns[n]);
        Parts parts;
#pragma unroll
        for (int step = 0; step < Unit::steps; ++step) {
            const int set = step * sets / Unit::steps;
            if (step * sets % Unit::steps == 0) begin_set(x, unit, set, weights, parts);
            multiply_step(x, unit, step, words, weights, parts);
            if ((step + 1) * sets % Unit::steps == 0) end_set(of_columns, set, weights, parts, sums);
        }
    }
}

/// Shared addresses.
struct Memory {
    unsigned char* start;
    uint32 base;

    __device__ float* partials(int buffer) const {
        return reinterpret_cast<float*>(start + geometry.partials_at()) + buffer * geometry.buffer_floats();
    }
    __device__ uint32 full(int buffer) const { return base + geometry.barriers_at() + 8 * buffer; }
    __device__ uint32 empty(int buffer) const { return full(geometry.buffers + buffer); }
};

__device__ inline int partial_place(int warp, int product, int column, int row) {
    return ((warp * products + product) * geometry.columns() + column) * geometry.partial_pitch + row;
}

/// What a block has to do: groups of rows with the grid's step. That is a multiple of four where a block has
/// several, so that all of them are at the same place of their blocks of rows.
struct Schedule {
    __device__ Schedule()
        : first(static_cast<int>(blockIdx.x)),
          step(static_cast<int>(gridDim.x)),
          count((geometry.groups() - first + step - 1) / step) {}
    __device__ int group(int number) const { return first + number * step; }

    int first;
    int step;
    int count;
};

class Multiplier {
  public:
    __device__ Multiplier(const Tensors& tensors, const Schedule& schedule)
        : first_unit_(static_cast<int>(threadIdx.x) / 32 * unroll),
          block_step_(schedule.step / 4),
          count_(schedule.count) {
#pragma unroll
        for (int product = 0; product < products; ++product)
            from_[product] = Unit::From(tensors.weight_of(product), schedule.group(0), first_unit_);
    }

    /// Asks for the first units; and level 2 for those of the next turns.
    __device__ void begin() {
#pragma unroll
        for (int u = 0; u < unroll; ++u) load(0, u);
        Unit::From ahead[products];
#pragma unroll
        for (int product = 0; product < products; ++product) ahead[product] = from_[product];
        int turn = 0;
#pragma unroll
        for (int i = 0; i < Tuned::ahead; ++i) {
            turn = advance(ahead, turn);
            if (i / geometry.turns() + 1 >= count_) break;
#pragma unroll
            for (int product = 0; product < products; ++product) {
#pragma unroll
                for (int u = 0; u < unroll; ++u) Unit::prefetch(ahead[product], u);
            }
        }
    }

    __device__ void run(const X& x, Memory memory) {
        Sums sums = {};
        int number = 0;
        int turn = 0;
#pragma unroll 1
        for (int i = count_ * geometry.turns() - 1; i > 0; --i) {
            const int next = advance(from_, turn);
#pragma unroll
            for (int u = 0; u < unroll; ++u) {
                multiply(x, unit(turn, u), held_[u], sums);
                load(next, u);
            }
            if (next == 0) put(memory, number++, sums);
            turn = next;
        }
#pragma unroll
        for (int u = 0; u < unroll; ++u) multiply(x, unit(turn, u), held_[u], sums);
        put(memory, number, sums);
    }

  private:
    __device__ int unit(int turn, int u) const { return turn * geometry.turn() + first_unit_ + u; }
    /// To the turn behind `turn`, which is returned: of the same rows, or of the block's next.
    __device__ int advance(Unit::From (&from)[products], int turn) const {
        const bool stays = geometry.turns() > 1 && turn + 1 < geometry.turns();
#pragma unroll
        for (int product = 0; product < products; ++product) {
            if (stays)
                from[product].advance(geometry.turn(), 0);
            else
                from[product].advance(-(geometry.turns() - 1) * geometry.turn(), block_step_);
        }
        return stays ? turn + 1 : 0;
    }
    /// In place of a unit that is none the last again: without branches all loads are under way together.
    __device__ void load(int turn, int u) {
        int index = u;
        int there = unit_columns;
        if constexpr (!whole_turns) {
            const int wanted = unit(turn, u);
            index -= max(wanted - (units - 1), 0);
            there = in - min(wanted, units - 1) * unit_columns;
        }
#pragma unroll
        for (int product = 0; product < products; ++product)
            held_[u][product].load(from_[product], index, there);
    }

    __device__ void put(Memory memory, int number, Sums& sums) const {
        const int lane = threadIdx.x % 32;
        const int buffer = number % geometry.buffers;
        const uint32 parity = number / geometry.buffers & 1;
        barrier_wait(memory.empty(buffer), parity ^ 1);
        float* const to =
            memory.partials(buffer) + partial_place(threadIdx.x / 32, 0, lane % 4 * 2, lane / 4);
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int n = 0; n < column_blocks; ++n) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    if (n * 8 + lane % 4 * 2 + i % 2 < geometry.columns())
                        to[partial_place(0, product, n * 8 + i % 2, i / 2 * 8)] =
                            static_cast<float>(sums[product][n].values[i]);
                }
                sums[product][n] = {};
            }
        }
        barrier_arrive(memory.full(buffer));
    }

    Unit::From from_[products];
    Unit held_[unroll][products];
    int first_unit_;
    int block_step_;
    int count_;
};

/// The result of a row's sums; `factor`: behind a norm.
__device__ inline void store(const Tensors& tensors, int token, int64 row, float (&sums)[products],
                             float factor, float added) {
    if (row >= out || token >= tensors.tokens) return;
#pragma unroll
    for (int product = 0; product < products; ++product) {
        sums[product] *= row_factor(tensors.weight_of(product), row);
        if constexpr (folds_norm) sums[product] *= factor;
        if constexpr (!is_packed && !has_blocks)
            sums[product] *= tensors.x_scales[token * tensors.x_scale_stride];
    }
    tensors.out[token * tensors.out_stride + row] =
        from_float<Element>(tensors.finish(static_cast<int>(row), sums, added));
}

/// The finishing warp. What is added to results is asked for before their sums are there.
__device__ inline void finish(const Tensors& tensors, const Schedule& schedule, Memory memory) {
    constexpr int results = geometry.rows * geometry.tokens;
    constexpr int lane_results = (results + 31) / 32;
    constexpr int each = geometry.columns() / geometry.tokens;
    const int lane = threadIdx.x % 32;
    float factors[lane_results] = {};
    if constexpr (folds_norm) {
#pragma unroll
        for (int token = 0; token < geometry.tokens; ++token) {
            const float factor = norm_factor(tensors, memory.start, token);
#pragma unroll
            for (int k = 0; k < lane_results; ++k)
                if ((lane + 32 * k) / geometry.rows == token) factors[k] = factor;
        }
    }
    for (int number = 0; number < schedule.count; ++number) {
        const int buffer = number % geometry.buffers;
        float added[lane_results] = {};
        if constexpr (has_residual) {
            const int64 first_row = static_cast<int64>(schedule.group(number)) * geometry.rows;
#pragma unroll
            for (int k = 0; k < lane_results; ++k) {
                const int token = (lane + 32 * k) / geometry.rows;
                const int64 row = first_row + (lane + 32 * k) % geometry.rows;
                if (token < tensors.tokens && row < out)
                    added[k] = tensors.residual_of(token, static_cast<int>(row));
            }
        }
        barrier_wait(memory.full(buffer), number / geometry.buffers & 1);
        const float* const from = memory.partials(buffer);
#pragma unroll
        for (int i = lane; i < results; i += 32) {
            const int token = i / geometry.rows;
            const int row = i % geometry.rows;
            float sums[products] = {};
#pragma unroll
            for (int product = 0; product < products; ++product) {
#pragma unroll
                for (int warp = 0; warp < geometry.k_warps; ++warp) {
#pragma unroll
                    for (int digit = 0; digit < each; ++digit)
                        sums[product] += from[partial_place(warp, product, token * each + digit, row)];
                }
            }
            store(tensors, token, static_cast<int64>(schedule.group(number)) * geometry.rows + row, sums,
                  factors[i / 32], added[i / 32]);
        }
        barrier_arrive(memory.empty(buffer));
    }
}

__device__ inline void run(const Tensors& tensors, unsigned char* start) {
    if constexpr (Tuned::programmatic != 0) release_successor();
    const Memory memory{start, shared_address(start)};
    const Schedule schedule;
    const bool multiplies = threadIdx.x < 32 * geometry.k_warps;
    Multiplier multiplier(tensors, schedule);
    if (multiplies) multiplier.begin();
    if (threadIdx.x == 0) {
        for (int buffer = 0; buffer < geometry.buffers; ++buffer) {
            barrier_init(memory.full(buffer), 32 * geometry.k_warps);
            barrier_init(memory.empty(buffer), 32);
        }
    }
    if constexpr (folds_norm) ask_for_norm_weight(tensors);
    if constexpr (Tuned::programmatic != 0) wait_for_predecessor();
    stage_x(tensors, memory.base);
    __syncthreads();
    if (multiplies)
        multiplier.run(X(memory.base), memory);
    else
        finish(tensors, schedule, memory);
}

}  // namespace hone::quantized_linear::walk

extern "C" __global__ void __launch_bounds__(hone::quantized_linear::walk::geometry.threads(),
                                             Tuned::blocks_per_sm)
    quantized_linear_walk(HONE_PARAMETERS(quantized_linear_walk)) {
    const hone::quantized_linear::Tensors tensors{HONE_ARGUMENTS(quantized_linear_walk)};
    extern __shared__ __align__(128) unsigned char memory[];
    hone::quantized_linear::walk::run(tensors, memory);
}

namespace hone::quantized_linear::quantize {
inline constexpr int vector = 8;
}

#include "quantized_linear/quantize.cuh"
