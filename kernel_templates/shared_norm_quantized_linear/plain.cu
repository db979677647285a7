// Quantized linear layers that share a norm, variant plain: shared_norm_linear/plain.cuh says how. A weight
// is read code by code.
#include "quantized_linear/tensors.cuh"

namespace hone::quantized_linear {

__device__ inline float weight_at(const Tensors& t, int product, int column, int i) {
    return t.weight_of(product).value(column, i);
}

}  // namespace hone::quantized_linear

#include "shared_norm_linear/plain.cuh"

extern "C" __global__ void __launch_bounds__(256)
    shared_norm_quantized_linear_plain(HONE_PARAMETERS(shared_norm_quantized_linear_plain)) {
    const hone::quantized_linear::Tensors tensors{HONE_ARGUMENTS(shared_norm_quantized_linear_plain)};
    hone::linear::plain::run(tensors);
}
