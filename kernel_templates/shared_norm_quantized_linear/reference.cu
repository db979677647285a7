// Quantized linear layers that share a norm, reference: shared_norm_linear/reference.cuh says how. A weight
// is read code by code.
#include "quantized_linear/tensors.cuh"

namespace hone::quantized_linear {

__device__ inline float weight_at(const Tensors& t, int product, int column, int i) {
    return t.weight_of(product).value(column, i);
}

}  // namespace hone::quantized_linear

#include "shared_norm_linear/reference.cuh"

extern "C" __global__ void __launch_bounds__(32 * hone::linear::square_columns)
    shared_norm_quantized_linear_reference(HONE_PARAMETERS(shared_norm_quantized_linear_reference)) {
    const hone::quantized_linear::Tensors tensors{HONE_ARGUMENTS(shared_norm_quantized_linear_reference)};
    hone::linear::reference::run(tensors);
}
