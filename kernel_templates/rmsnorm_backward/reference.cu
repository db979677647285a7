// RMSNorm backward, reference: everything in double, in two launches. The first has one block a row, computes
// dx and leaves r in the workspace, one double a row; in the second, 32 columns a block are summed over all
// rows by eight threads each. Outputs are float32 arrays.
#include "rmsnorm_backward/backward.cuh"

namespace hone::rmsnorm_backward::reference {

__device__ inline double block_sum(double value) {
    __shared__ double partials[256];
    __syncthreads();
    partials[threadIdx.x] = value;
    __syncthreads();
    double total = 0;
    for (int i = 0; i < 256; ++i) total += partials[i];
    return total;
}

__device__ inline double value_at(const Element* tensor, int64 stride, int64 row, int column) {
    return to_float(tensor[row * stride + column]);
}

__device__ inline void input_gradient(const Tensors& t) {
    const int64 row = blockIdx.x;
    double squares = 0;
    double products = 0;
    for (int column = threadIdx.x; column < hidden; column += 256) {
        const double x = value_at(t.x, t.x_stride, row, column);
        const double g = value_at(t.dy, t.dy_stride, row, column) * value_at(t.weight, 0, 0, column);
        squares += x * x;
        products += g * x;
    }
    const double r = 1.0 / sqrt(block_sum(squares) / hidden + static_cast<double>(t.epsilon));
    const double mean = block_sum(products) / hidden;
    for (int column = threadIdx.x; column < hidden; column += 256) {
        const double x = value_at(t.x, t.x_stride, row, column);
        const double g = value_at(t.dy, t.dy_stride, row, column) * value_at(t.weight, 0, 0, column);
        double result = r * (g - x * r * r * mean);
        if (has_residual) result += value_at(t.dsum, t.dsum_stride, row, column);
        t.dx[row * hidden + column] = static_cast<float>(result);
    }
    if (threadIdx.x == 0) reinterpret_cast<double*>(t.workspace)[row] = r;
}

__device__ inline void weight_gradient(const Tensors& t) {
    __shared__ double partials[8][32];
    const int column = blockIdx.x * 32 + threadIdx.x % 32;
    const int part = threadIdx.x / 32;
    double sum = 0;
    for (int64 row = part; row < t.rows && column < hidden; row += 8) {
        const double r = reinterpret_cast<const double*>(t.workspace)[row];
        sum += value_at(t.dy, t.dy_stride, row, column) * value_at(t.x, t.x_stride, row, column) * r;
    }
    partials[part][threadIdx.x % 32] = sum;
    __syncthreads();
    if (part != 0 || column >= hidden) return;
    for (int i = 1; i < 8; ++i) sum += partials[i][threadIdx.x];
    t.dweight[column] = static_cast<float>(sum);
}

}  // namespace hone::rmsnorm_backward::reference

extern "C" __global__ void __launch_bounds__(256)
    rmsnorm_backward_reference_input(HONE_PARAMETERS(rmsnorm_backward_reference_input)) {
    const hone::rmsnorm_backward::Tensors tensors{HONE_ARGUMENTS(rmsnorm_backward_reference_input)};
    using namespace hone::rmsnorm_backward;
    reference::input_gradient(tensors);
}

extern "C" __global__ void __launch_bounds__(256)
    rmsnorm_backward_reference_weight(HONE_PARAMETERS(rmsnorm_backward_reference_weight)) {
    const hone::rmsnorm_backward::Tensors tensors{HONE_ARGUMENTS(rmsnorm_backward_reference_weight)};
    using namespace hone::rmsnorm_backward;
    reference::weight_gradient(tensors);
}
