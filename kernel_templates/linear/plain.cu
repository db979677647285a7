// Linear, variant plain: any size, any type, any chip; CUDA cores alone. plain_product.cuh says how. A norm
// is a launch before it.
#include "linear/plain_product.cuh"
#include "linear/tensors.cuh"

namespace hone::linear::plain {

using plain_product::StagedRows;

__device__ inline float unscaled(int64, int) { return 1.0f; }

struct StagedX : StagedRows<Element, plain_product::tile_tokens> {
    __device__ void load(const Tensors& from, int64 first_token, int step) {
        StagedRows::load(from.x, from.x_stride, first_token, from.tokens, step, unscaled);
    }
};

struct StagedWeight : StagedRows<Element, plain_product::tile_out> {
    __device__ void load(const Tensors& from, int product, int first_row, int step) {
        const Element* weight = product == 0 ? from.weight : from.up;
        const int64 stride = product == 0 ? from.weight_stride : from.up_stride;
        StagedRows::load(weight, stride, first_row, out, step, unscaled);
    }
};

}  // namespace hone::linear::plain

extern "C" __global__ void __launch_bounds__(hone::linear::plain_product::threads)
    linear_plain(HONE_PARAMETERS(linear_plain)) {
    const hone::linear::Tensors tensors{HONE_ARGUMENTS(linear_plain)};
    using namespace hone::linear;
    plain_product::run<plain::StagedX, plain::StagedWeight>(tensors);
}

namespace hone::linear::normalize {
inline constexpr int vector = plain_product::vector;
}

#include "linear/normalize.cuh"
