// Linear layers of experts, variant strips, for up to 8 rows an expert: a block takes up to `tile_rows` rows
// of one expert and `rows` rows of its weight for each of `row_warps` groups of `k_warps` warps, which split
// `in` between them. So an expert's weights are read once, in strips of 128 or 256 bytes a row, neighbours of
// which belong to the group's other warps, and multiplied with mma.m16n8k16 as the right operand.
//
// Rows of x are the left operand, 16 an instruction. A tile leaves some of these free, which take the same
// rows again at other columns, as in linear's strips: row a has row a % tile_rows of the tile and part
// a / tile_rows of the strip; a column n of the right operand has part n % parts of the weight's row
// n / parts. What a part gives with another part of x is not looked at; the products of equal parts are
// added up at the end.
//
// Data's way: weights come from global memory straight into registers, 16 bytes an access, one batch ahead of
// the one being multiplied, and past level 1; rows of x come through level 1. Fragments need no shared
// memory: lane l = 4 g + t reads 8 neighbouring columns, the first 4 of which serve one instruction and the
// last 4 the next. Warps' sums meet in shared memory, added in order behind the one barrier. Blocks that
// find no work leave before it as a whole.
#include "device/mma.cuh"
#include "device/sync.cuh"
#include "expert_linear/expert_tiles.cuh"
#include "expert_linear/weights.cuh"

namespace hone::expert_linear::strips {

inline constexpr int tile_rows = Tuned::tile_rows;
/// Rows of the weight that a warp multiplies together.
inline constexpr int rows = Tuned::rows;
inline constexpr int k_warps = Tuned::k_warps;
inline constexpr int row_warps = Tuned::row_warps;
inline constexpr int unroll = Tuned::unroll;
inline constexpr int threads = 32 * k_warps * row_warps;
inline constexpr int part = 32;
inline constexpr int parts = 16 / tile_rows;
inline constexpr int strip = part * parts;
/// Rows of the weight that an instruction has.
inline constexpr int mma_rows = 8 / parts;
inline constexpr int row_blocks = rows / mma_rows;
inline constexpr int strips = (in + strip - 1) / strip;
inline constexpr int batches = (strips + k_warps * unroll - 1) / (k_warps * unroll);
inline constexpr int across = (columns + rows * row_warps - 1) / (rows * row_warps);
static_assert(in % 8 == 0, "rows start at multiples of 16 bytes");
static_assert(rows % mma_rows == 0 && columns >= rows, "a warp's rows exist, and fill instructions");
using Tiles = ExpertTiles<tile_rows, across>;

/// With 8 or 16 rows the pitch is 4 more than a multiple of 8 words: rows of x fall into distinct banks.
struct Partials {
    float sums[row_warps][k_warps][products][tile_rows][rows + 4];
};

/// `rows` rows of the weight from `first` on, where a lane reads them. The last group moves back to whole
/// rows; what it then computes a second time, below `wanted`, it does not write.
struct Weights {
    const Element* at[products];
    int wanted;
    int first;

    __device__ Weights(const Tensors& tensors, const Tile& tile, int group)
        : wanted((tile.column * row_warps + group) * rows), first(min(wanted, columns - rows)) {
        const int row = first + lane_index() / 4 / parts;
#pragma unroll
        for (int product = 0; product < products; ++product)
            at[product] =
                weight_of(tensors, product, tile.expert) + static_cast<int64>(row) * in + column_in_strip();
    }
    __device__ static int column_in_strip() { return lane_index() / 4 % parts * part + lane_index() % 4 * 8; }
};

/// Rows g and g + 8 of each left operand, where a lane reads them; those missing repeat the tile's last.
struct Rows {
    const Element* at[2];

    __device__ Rows(const Tensors& tensors, const Tile& tile) {
        const int place = min(tile.first + lane_index() / 4 % tile_rows, tile.end - 1);
        const Element* const row = tensors.x_at(place);
#pragma unroll
        for (int half = 0; half < 2; ++half) at[half] = row + column_in_strip(half);
    }
    __device__ static int column_in_strip(int half) {
        return (half * 8 + lane_index() / 4) / tile_rows * part + lane_index() % 4 * 8;
    }
    /// Of the strip that begins at column `first`; zeros past the end of a row.
    __device__ uint4 load(int half, int first) const {
        if (first + column_in_strip(half) >= in) return uint4{0, 0, 0, 0};
        return load_word<LoadHint::normal, 16>(at[half] + first);
    }
};

/// Of a warp's strip; the group's warps have neighbours.
__device__ inline int first_column(int batch, int u, int k_warp) {
    return ((batch * k_warps + k_warp) * unroll + u) * strip;
}

/// A batch of weights on its way.
struct Held {
    uint4 words[unroll][products][row_blocks];
};

/// Past the end of a row x is zero, so any readable weight does.
__device__ inline void load(const Weights& from, int batch, int k_warp, Held& held) {
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
        const int first = first_column(batch, u, k_warp);
        const int column = first + Weights::column_in_strip() < in ? first : -Weights::column_in_strip();
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int block = 0; block < row_blocks; ++block)
                held.words[u][product][block] = load_word<static_cast<LoadHint>(Tuned::load_hint), 16>(
                    from.at[product] + block * mma_rows * in + column);
        }
    }
}

using Sums = MmaSums[products][row_blocks];

__device__ inline void multiply(const Rows& rows_of_x, int batch, int k_warp, const Held& held, Sums& sums) {
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
        const int first = first_column(batch, u, k_warp);
        const uint4 low = rows_of_x.load(0, first);
        const uint4 high = rows_of_x.load(1, first);
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int block = 0; block < row_blocks; ++block) {
                const uint4& weight = held.words[u][product][block];
                MmaSums& to = sums[product][block];
                multiply_16<Element>(to, low.x, high.x, low.y, high.y, weight.x, weight.y);
                multiply_16<Element>(to, low.z, high.z, low.w, high.w, weight.z, weight.w);
            }
        }
    }
}

/// A row of x's and a row of the weight's sum of the products of equal parts. Lanes that differ in nothing
/// but parts all get it.
__device__ inline float sum_of_parts(const MmaSums& sums) {
    const int g = lane_index() / 4;
    const int t = lane_index() % 4;
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int x_part = (g + i / 2 * 8) / tile_rows;
        const int weight_part = (2 * t + i % 2) % parts;
        if (x_part == weight_part) sum += sums.values[i];
    }
#pragma unroll
    for (int row_bit = tile_rows; row_bit < 8; row_bit *= 2)
        sum += __shfl_xor_sync(all_lanes, sum, 4 * row_bit);
#pragma unroll
    for (int part_bit = 2; part_bit < parts; part_bit *= 2)
        sum += __shfl_xor_sync(all_lanes, sum, part_bit / 2);
    return sum;
}

/// A warp's sums of a product into shared memory.
__device__ inline void put(float (&to)[tile_rows][rows + 4], const MmaSums (&sums)[row_blocks]) {
    const int g = lane_index() / 4;
    const int t = lane_index() % 4;
#pragma unroll
    for (int block = 0; block < row_blocks; ++block) {
        const float sum = sum_of_parts(sums[block]);
        const bool is_first = g < tile_rows && 2 * t % parts == 0;
        if (is_first) to[g][block * mma_rows + 2 * t / parts] = sum;
    }
}

__device__ inline void store(const Tensors& tensors, const Tile& tile, const Partials& partials, int group,
                             int k_warp, const Weights& of) {
#pragma unroll 1
    for (int index = k_warp * 32 + lane_index(); index < rows * tile_rows; index += 32 * k_warps) {
        const int place = tile.first + index / rows;
        const int row = index % rows;
        const int column = of.first + row;
        if (place >= tile.end) return;
        if (column < of.wanted) continue;
        float sums[products] = {};
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int warp = 0; warp < k_warps; ++warp)
                sums[product] += partials.sums[group][warp][product][index / rows][row];
        }
        Element* const to = tensors.result_at(place);
        if (to != nullptr) to[column] = from_float<Element>(tensors.finish(tile.expert, column, sums));
    }
}

__device__ inline void run(const Tensors& tensors) {
    __shared__ Partials partials;
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    Tile tile;
    if (!Tiles(tensors).find(blockIdx.x, tile)) return;
    const int k_warp = warp_index() % k_warps;
    const int group = warp_index() / k_warps;
    const Weights weights(tensors, tile, group);
    Held held;
    load(weights, 0, k_warp, held);
    const Rows rows_of_x(tensors, tile);
    Sums sums = {};
    // Not unrolled: in straight code the assembler moves loads down to their uses.
#pragma unroll 1
    for (int batch = 0; batch < batches; ++batch) {
        const Held current = held;
        if (batch + 1 < batches) load(weights, batch + 1, k_warp, held);
        multiply(rows_of_x, batch, k_warp, current, sums);
    }
#pragma unroll
    for (int product = 0; product < products; ++product)
        put(partials.sums[group][k_warp][product], sums[product]);
    __syncthreads();
    store(tensors, tile, partials, group, k_warp, weights);
}

}  // namespace hone::expert_linear::strips

/// 512 threads of a multiprocessor, in two blocks at least: one begins while another adds up.
extern "C" __global__ void __launch_bounds__(hone::expert_linear::strips::threads,
                                             512 / hone::expert_linear::strips::threads)
    expert_linear_strips(HONE_PARAMETERS(expert_linear_strips)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(expert_linear_strips)};
    hone::expert_linear::strips::run(tensors);
}

namespace hone::expert_linear::combine {
inline constexpr int vector = columns % 8 == 0 ? 8 : 1;
}

#include "expert_linear/combine.cuh"
