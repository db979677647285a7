// Linear layers of experts, variant plain: any size, any type, any chip; CUDA cores alone. plain_tile.cuh
// says how.
#include "expert_linear/plain_tile.cuh"
#include "expert_linear/weights.cuh"

namespace hone::expert_linear::plain {

struct StagedWeight : product::StagedRows<Element, product::tile_out> {
    __device__ void load(const Element* weight, int first_row, int step) {
        StagedRows::load(weight, in, first_row, columns, step, [](int64, int) { return 1.0f; });
    }
};

}  // namespace hone::expert_linear::plain

extern "C" __global__ void __launch_bounds__(hone::linear::plain_product::threads)
    expert_linear_plain(HONE_PARAMETERS(expert_linear_plain)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(expert_linear_plain)};
    using namespace hone::expert_linear;
    plain::run<plain::StagedWeight>(
        tensors, [&](const Tile& tile) { return plain::StagedX(tensors, tile); },
        [&](plain::StagedWeight& to, int product, const Tile& tile, int step) {
            to.load(weight_of(tensors, product, tile.expert), tile.column * plain::product::tile_out, step);
        });
}

namespace hone::expert_linear::combine {
inline constexpr int vector =
    columns % linear::plain_product::vector == 0 ? linear::plain_product::vector : 1;
}

#include "expert_linear/combine.cuh"
