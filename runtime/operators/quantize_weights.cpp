// run() of quantizing weights: arguments become a call, in the order that
// kernel_templates/quantize_weights/quantize_weights.h declares; then what the kernels found is read back.
#include "hone/quantize_weights.h"

#include <algorithm>

#include "kernel_templates/quantize_weights/quantize_weights.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/stream.h"
#include "runtime/dispatch/prepared_operator.h"
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/call_arguments.h"
#include "runtime/operators/quantize_weights_problem.h"
#include "runtime/quantize/quantize_parts.h"

namespace hone {
namespace {

using quantize_weights::BadRows;
using runtime::pointer;

Call quantize_call(const QuantizeWeightsArgs& args, const QuantizeWeights& weights, std::int64_t out) {
    Call call;
    call.pointers[quantize_weights::weight] = pointer(args.weight);
    call.pointers[quantize_weights::codes] = args.codes;
    call.pointers[quantize_weights::scales] = args.scales;
    call.pointers[quantize_weights::zeros] = args.zeros;
    call.pointers[quantize_weights::workspace] = args.workspace;
    call.scalars[quantize_weights::out] = Scalar::of(out);
    call.scalars[quantize_weights::weight_stride] = runtime::stride(args.weight_stride, weights.in);
    return call;
}

template <class T>
std::vector<T> read(const runtime::Driver& driver, const void* from, std::int64_t count) {
    const runtime::DeviceSpan<T> span{reinterpret_cast<CUdeviceptr>(from), static_cast<std::size_t>(count)};
    return runtime::download(driver, span);
}

/// Throws for the first row with a weight that has no code.
void check_rows(const runtime::Driver& driver, const QuantizeWeightsArgs& args,
                const QuantizeWeights& weights, std::int64_t out) {
    const BadRows bad = read<BadRows>(driver, args.workspace, 1).front();
    const std::int64_t row = std::min(bad.not_finite, bad.scale_too_large);
    if (row >= out) return;
    const std::int64_t element_bytes = size_bytes(weights.dtype);
    const std::int64_t stride = args.weight_stride == 0 ? weights.in : args.weight_stride;
    const auto* const from = static_cast<const std::byte*>(args.weight) + row * stride * element_bytes;
    const auto bytes = read<std::byte>(driver, from, weights.in * element_bytes);
    runtime::refuse_row(bytes, weights.dtype, runtime::packed_shape(weights, out), row);
}

}  // namespace

Status QuantizeWeightsKernel::run(CUstream_st* stream, const QuantizeWeightsArgs& args,
                                  std::int64_t out) const {
    if (operator_ == nullptr) return Status::not_prepared;
    return runtime::guarded("QuantizeWeights", [&] {
        const runtime::Driver& driver = operator_->session().driver();
        const runtime::CurrentContext context(driver, operator_->session().context());
        if (runtime::is_capturing(driver, stream)) return Status::capturing;
        const Status status = operator_->run(stream, quantize_call(args, weights_, out), {out});
        if (status != Status::ok || out == 0) return status;
        check(driver, driver.cuStreamSynchronize(stream), "quantizing weights");
        check_rows(driver, args, weights_, out);
        return status;
    });
}

}  // namespace hone
