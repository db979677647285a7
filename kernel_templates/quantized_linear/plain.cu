// Quantized linear, variant plain: any format, any size, any chip; CUDA cores alone. linear/plain_product.cuh
// says how. Codes of weights and their scales come from global memory one step ahead; into shared memory
// go the floats that they stand for. A norm, and codes of 16-bit x, are a launch before it.
#include "quantized_linear/plain_weights.cuh"

namespace hone::quantized_linear::plain {

/// x as the products take it: 16-bit elements, or codes with a scale a row or a block.
struct StagedX : StagedRows<Conditional<is_packed, Element, Code>::type, tile_tokens> {
    __device__ void load(const Tensors& from, int64 first_token, int step) {
        using T = Conditional<is_packed, Element, Code>::type;
        StagedRows::load(
            reinterpret_cast<const T*>(from.x), from.x_stride, first_token, from.tokens, step,
            [&](int64 token, int column) {
                if constexpr (is_packed) return 1.0f;
                return from.x_scales[token * from.x_scale_stride + (has_blocks ? column / scaled_block : 0)];
            });
    }
};

}  // namespace hone::quantized_linear::plain

extern "C" __global__ void __launch_bounds__(hone::linear::plain_product::threads)
    quantized_linear_plain(HONE_PARAMETERS(quantized_linear_plain)) {
    const hone::quantized_linear::Tensors tensors{HONE_ARGUMENTS(quantized_linear_plain)};
    using namespace hone::quantized_linear;
    plain::run<plain::StagedX, plain::StagedWeight>(tensors);
}

namespace hone::linear::normalize {
inline constexpr int vector = plain_product::vector;
}
namespace hone::quantized_linear::quantize {
inline constexpr int vector = linear::plain_product::vector;
}

#include "linear/normalize.cuh"
#include "quantized_linear/quantize.cuh"
