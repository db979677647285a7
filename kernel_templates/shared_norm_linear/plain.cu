// Linear layers that share a norm, variant plain: plain.cuh says how.
#include "linear/tensors.cuh"

namespace hone::linear {

__device__ inline float weight_at(const Tensors& t, int product, int column, int i) {
    return to_float(product == 0 ? t.weight[column * t.weight_stride + i] : t.up[column * t.up_stride + i]);
}

}  // namespace hone::linear

#include "shared_norm_linear/plain.cuh"

extern "C" __global__ void __launch_bounds__(256)
    shared_norm_linear_plain(HONE_PARAMETERS(shared_norm_linear_plain)) {
    const hone::linear::Tensors tensors{HONE_ARGUMENTS(shared_norm_linear_plain)};
    hone::linear::plain::run(tensors);
}
