// Linear layers of experts with quantized weights, variant plain: any format, any size, any chip; CUDA cores
// alone. expert_linear/plain_tile.cuh says how; weights are staged as in quantized_linear/plain_weights.cuh.
// Codes of x are a launch before it.
#include "quantized_expert_linear/tensors.cuh"

#include "expert_linear/plain_tile.cuh"
#include "quantized_linear/plain_weights.cuh"

namespace hone::quantized_expert_linear::plain {

namespace product = linear::plain_product;
using expert_linear::Tile;
using StagedWeight = quantized_linear::plain::StagedWeight;

/// Codes of x with their scales; a tile's missing rows repeat its last.
struct StagedCodes : product::StagedRows<quantized_linear::XElement, product::tile_tokens> {
    const quantized_linear::Tensors of;
    const Tile tile;

    __device__ StagedCodes(const Tensors& tensors, const Tile& its)
        : of(of_expert(tensors, its.expert)), tile(its) {}
    __device__ void load(int step) {
        StagedRows::load(of.x, of.x_stride, tile.first, tile.end, step, [&](int64 place, int column) {
            return of.x_scales[place * of.x_scale_stride + (has_blocks ? column / scaled_block : 0)];
        });
    }
};
using StagedX = Conditional<is_packed, expert_linear::plain::StagedX, StagedCodes>::type;

}  // namespace hone::quantized_expert_linear::plain

extern "C" __global__ void __launch_bounds__(hone::linear::plain_product::threads)
    quantized_expert_linear_plain(HONE_PARAMETERS(quantized_expert_linear_plain)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(quantized_expert_linear_plain)};
    using namespace hone::quantized_expert_linear;
    using hone::expert_linear::Tile;
    hone::expert_linear::plain::run<plain::StagedWeight>(
        tensors, [&](const Tile& tile) { return plain::StagedX(tensors, tile); },
        [&](plain::StagedWeight& to, int product, const Tile& tile, int step) {
            to.load(of_expert(tensors, tile.expert), product, tile.column * plain::product::tile_out, step);
        });
}

namespace hone::expert_linear::combine {
inline constexpr int vector =
    columns % linear::plain_product::vector == 0 ? linear::plain_product::vector : 1;
}
namespace hone::quantized_expert_linear::codes {
inline constexpr int vector = linear::plain_product::vector;
}

#include "expert_linear/combine.cuh"
#include "quantized_expert_linear/codes.cuh"
