// Linear layers of experts, variant gemv, for few rows an expert: a block takes some rows of one expert and
// `rows` rows of its weight for each of `row_warps` groups of `k_warps` warps, which split `in` between them.
//
// Data's way: weights come from global memory straight into registers, 16 bytes an access, one batch ahead of
// the one being multiplied, and past level 1; rows of x come through level 1, where the block's other warps
// find them. Lanes' sums meet by shuffles, warps' in shared memory, added in order behind the one barrier.
// Blocks that find no work leave before it as a whole.
#include "device/reduce.cuh"
#include "device/sync.cuh"
#include "expert_linear/expert_tiles.cuh"
#include "expert_linear/weights.cuh"

namespace hone::expert_linear::gemv {

inline constexpr int tile_rows = Tuned::tile_rows;
/// Rows of the weight that a warp multiplies together.
inline constexpr int rows = Tuned::rows;
inline constexpr int k_warps = Tuned::k_warps;
inline constexpr int row_warps = Tuned::row_warps;
inline constexpr int unroll = Tuned::unroll;
inline constexpr int threads = 32 * k_warps * row_warps;
/// Elements of one access, and of a warp's.
inline constexpr int vector = 16 / sizeof(Element);
inline constexpr int chunk = 32 * vector;
inline constexpr int chunks = (in + chunk - 1) / chunk;
inline constexpr int batches = (chunks + k_warps * unroll - 1) / (k_warps * unroll);
inline constexpr int across = (columns + rows * row_warps - 1) / (rows * row_warps);
static_assert(in % vector == 0, "rows start at multiples of 16 bytes");
static_assert(columns >= rows, "a warp's rows exist");
using Tiles = ExpertTiles<tile_rows, across>;

struct Partials {
    float sums[row_warps][k_warps][products][tile_rows][rows];
};

/// What a warp multiplies: rows of x, those missing repeat the last, and `rows` rows of the weight from
/// `first` on. The last group moves back to whole rows; what it then computes a second time, below `wanted`,
/// it does not write.
struct Operands {
    const Element* x[tile_rows];
    const Element* weight[products];
    int wanted;
    int first;

    __device__ Operands(const Tensors& tensors, const Tile& tile, int group)
        : wanted((tile.column * row_warps + group) * rows), first(min(wanted, columns - rows)) {
#pragma unroll
        for (int i = 0; i < tile_rows; ++i) x[i] = tensors.x_at(min(tile.first + i, tile.end - 1));
#pragma unroll
        for (int product = 0; product < products; ++product)
            weight[product] = weight_of(tensors, product, tile.expert) + static_cast<int64>(first) * in;
    }
};

/// A batch of weights on its way.
struct Held {
    uint4 words[unroll][products][rows];
};

__device__ inline int column_of(int batch, int u, int k_warp) {
    return ((batch * unroll + u) * k_warps + k_warp) * chunk + lane_index() * vector;
}

__device__ inline void unpack_word(const uint4& word, float (&values)[vector]) {
    Packet<Element, vector> packet;
    memcpy(&packet, &word, 16);
    unpack(packet, values);
}

/// Past the end of a row x is zero, so any readable weight does.
__device__ inline void load(const Operands& from, int batch, int k_warp, Held& held) {
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
        const int wanted = column_of(batch, u, k_warp);
        const int column = wanted < in ? wanted : 0;
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int row = 0; row < rows; ++row)
                held.words[u][product][row] = load_word<static_cast<LoadHint>(Tuned::load_hint), 16>(
                    from.weight[product] + static_cast<int64>(row) * in + column);
        }
    }
}

using Sums = float[products][rows][tile_rows];

__device__ inline void multiply(const Operands& from, int batch, int k_warp, const Held& held, Sums& sums) {
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
        const int column = column_of(batch, u, k_warp);
        float x[tile_rows][vector];
#pragma unroll
        for (int i = 0; i < tile_rows; ++i)
            unpack_word(column < in ? load_word<LoadHint::normal, 16>(from.x[i] + column) : uint4{0, 0, 0, 0},
                        x[i]);
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int row = 0; row < rows; ++row) {
                float weight[vector];
                unpack_word(held.words[u][product][row], weight);
#pragma unroll
                for (int i = 0; i < tile_rows; ++i) {
#pragma unroll
                    for (int v = 0; v < vector; ++v)
                        sums[product][row][i] = fmaf(weight[v], x[i][v], sums[product][row][i]);
                }
            }
        }
    }
}

/// Lanes' sums meet; ends with the barrier.
__device__ inline void leave(Partials& partials, int group, int k_warp, const Sums& sums) {
#pragma unroll
    for (int product = 0; product < products; ++product) {
#pragma unroll
        for (int row = 0; row < rows; ++row) {
#pragma unroll
            for (int i = 0; i < tile_rows; ++i) {
                const float sum = reduce_lanes<Sum, 32>(sums[product][row][i]);
                if (lane_index() == 0) partials.sums[group][k_warp][product][i][row] = sum;
            }
        }
    }
    __syncthreads();
}

__device__ inline void store(const Tensors& tensors, const Tile& tile, const Partials& partials, int group,
                             int k_warp, const Operands& of) {
    for (int index = k_warp * 32 + lane_index(); index < rows * tile_rows; index += 32 * k_warps) {
        const int i = index / rows;
        const int row = index % rows;
        float sums[products] = {};
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int warp = 0; warp < k_warps; ++warp)
                sums[product] += partials.sums[group][warp][product][i][row];
        }
        const int column = of.first + row;
        if (tile.first + i >= tile.end || column < of.wanted) continue;
        Element* const to = tensors.result_at(tile.first + i);
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
    const Operands from(tensors, tile, group);
    Sums sums = {};
    Held held;
    load(from, 0, k_warp, held);
    // Not unrolled: in straight code the assembler moves loads down to their uses.
#pragma unroll 1
    for (int batch = 0; batch < batches; ++batch) {
        const Held current = held;
        if (batch + 1 < batches) load(from, batch + 1, k_warp, held);
        multiply(from, batch, k_warp, current, sums);
    }
    leave(partials, group, k_warp, sums);
    store(tensors, tile, partials, group, k_warp, from);
}

}  // namespace hone::expert_linear::gemv

extern "C" __global__ void __launch_bounds__(hone::expert_linear::gemv::threads)
    expert_linear_gemv(HONE_PARAMETERS(expert_linear_gemv)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(expert_linear_gemv)};
    hone::expert_linear::gemv::run(tensors);
}

namespace hone::expert_linear::combine {
inline constexpr int vector = columns % gemv::vector == 0 ? gemv::vector : 1;
}

#include "expert_linear/combine.cuh"
