#include "runtime/operators/quantize_on_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "hone/quantize_on_device.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/stream.h"
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/runtime_state.h"
#include "runtime/quantize/quantize_parts.h"

namespace hone {
namespace runtime {
namespace {

using quantize_weights::BadRows;

template <class T>
std::vector<T> read(const Driver& driver, const void* from, std::int64_t count) {
    const DeviceSpan<T> span{reinterpret_cast<CUdeviceptr>(from), static_cast<std::size_t>(count)};
    return download(driver, span);
}

}  // namespace

PackedShape packed_shape(const QuantizeWeights& weights, std::int64_t out) {
    return {.format = weights.format,
            .out = out,
            .in = weights.in,
            .group = weights.group,
            .zeros = weights.zeros,
            .one_scale = weights.one_scale,
            .scale_dtype = weights.scale_dtype};
}

DeviceQuantizer::DeviceQuantizer(Dispatcher& dispatcher, const QuantizeWeights& weights, std::int64_t out)
    : kernels_(dispatcher.kept(quantize_problem(weights))), weights_(weights), out_(out) {}

Status DeviceQuantizer::run(CUstream stream, const QuantizeWeightsArgs& args,
                            const WaitForStream& wait) const {
    const Driver& driver = kernels_->session().driver();
    const CurrentContext context(driver, kernels_->session().context());
    if (is_capturing(driver, stream)) return Status::capturing;
    const Status status = kernels_->run(stream, quantize_call(weights_, args, out_), {out_});
    if (status != Status::ok || out_ == 0) return status;
    if (wait) {
        wait();
    } else {
        check(driver, driver.cuStreamSynchronize(stream), "quantizing weights");
    }
    check_rows(args);
    return status;
}

/// Throws for the first row with a weight that has no code.
void DeviceQuantizer::check_rows(const QuantizeWeightsArgs& args) const {
    const Driver& driver = kernels_->session().driver();
    const BadRows bad = read<BadRows>(driver, args.workspace, 1).front();
    const std::int64_t row = std::min(bad.not_finite, bad.scale_too_large);
    if (row >= out_) return;
    const std::int64_t element_bytes = size_bytes(weights_.dtype);
    const std::int64_t row_stride = stride(args.weight_stride, weights_.in);
    const auto* const from = static_cast<const std::byte*>(args.weight) + row * row_stride * element_bytes;
    const auto bytes = read<std::byte>(driver, from, weights_.in * element_bytes);
    refuse_row(bytes, weights_.dtype, packed_shape(weights_, out_), row);
}

std::string DeviceQuantizer::refusal(const QuantizeWeightsArgs& args) const {
    return kernels_->refusal(quantize_call(weights_, args, out_), {out_});
}

void quantize_on_device(Runtime& runtime, const QuantizeWeights& weights, const QuantizeWeightsArgs& args,
                        std::int64_t out, CUstream stream, const WaitForStream& wait) {
    guarded("quantize_on_device()", [&] {
        const DeviceQuantizer quantizer(dispatcher_of(runtime), weights, out);
        const Status status = quantizer.run(stream, args, wait);
        if (status == Status::launch_failed) throw std::runtime_error(runtime.last_launch_error());
        if (status == Status::ok) return;
        const std::string wrong = quantizer.refusal(args);
        throw std::invalid_argument(wrong.empty() ? std::string(describe(status)) : wrong);
    });
}

}  // namespace runtime

void quantize_on_device(Runtime& runtime, const QuantizeWeights& weights, const QuantizeWeightsArgs& args,
                        std::int64_t out, CUstream_st* stream) {
    runtime::quantize_on_device(runtime, weights, args, out, stream, {});
}

std::int64_t quantize_on_device_workspace(Runtime& runtime, const QuantizeWeights& weights,
                                          std::int64_t out) {
    return runtime::guarded("quantize_on_device_workspace()", [&] {
        return runtime::DeviceQuantizer(runtime::dispatcher_of(runtime), weights, out).workspace_bytes();
    });
}

}  // namespace hone
