#include "hone/quantize.h"
#include "hone/quantize_on_device.h"
#include "runtime/c_api/operator.h"
#include "runtime/dispatch/public_error.h"
#include "runtime/operators/quantize_on_device.h"
#include "runtime/operators/runtime_state.h"

namespace hone::c_api {
namespace {

/// Scales of other formats than w4a16 are fp32 whatever the caller says.
QuantizeWeights weights_from(hone_quantize_weights given) {
    const bool is_w4 = given.format == HONE_QUANT_W4A16;
    if (!is_w4) given.scale_dtype = HONE_FP32;
    return from_c(given);
}

template <class T>
std::span<T> bytes_of(void* from, std::int64_t count) {
    return {static_cast<T*>(from), static_cast<std::size_t>(count)};
}

hone_status on_host(const QuantizeWeights& weights, const QuantizeWeightsArgs& args, std::int64_t out,
                    std::int32_t threads) {
    if (out < 0 || out > weights.max_out) return fail(HONE_BAD_ROWS);
    if (args.weight_stride != 0 && args.weight_stride != weights.in) return fail(HONE_BAD_STRIDE);
    if (out == 0) return HONE_OK;
    const PackedShape shape = runtime::packed_shape(weights, out);
    check(shape);
    const bool is_whole = args.weight != nullptr && args.codes != nullptr && args.scales != nullptr &&
                          (args.zeros != nullptr || !weights.zeros);
    if (!is_whole) return fail(HONE_NULL_POINTER, "weight, codes, scales or zeros is NULL");
    const std::span weight(static_cast<const std::byte*>(args.weight),
                           static_cast<std::size_t>(out * weights.in * size_bytes(weights.dtype)));
    const PackedSpans stored{bytes_of<std::uint8_t>(args.codes, packed_bytes(shape.format, out, weights.in)),
                             bytes_of<std::uint8_t>(args.scales, scale_bytes(shape)),
                             bytes_of<std::uint8_t>(args.zeros, zero_count(shape))};
    quantize_into(weight, weights.dtype, shape, stored, {.search = weights.search, .threads = threads});
    return HONE_OK;
}

hone_status on_device(Runtime& owner, const QuantizeWeights& weights, const QuantizeWeightsArgs& args,
                      std::int64_t out, void* stream) {
    return runtime::guarded("quantize_on_device()", [&] {
        const runtime::DeviceQuantizer quantizer(runtime::dispatcher_of(owner), weights, out);
        const Status status = quantizer.run(static_cast<CUstream_st*>(stream), args);
        if (status == Status::ok) return HONE_OK;
        const bool by_driver = status == Status::launch_failed;
        return fail(to_c(status), by_driver ? owner.last_launch_error() : quantizer.refusal(args));
    });
}

/// Hands `use` what a caller gives.
template <class Use>
hone_status with_given(const char* where, const hone_quantize_weights* description,
                       const hone_quantize_weights_args* args, Use&& use) noexcept {
    if (description == nullptr || args == nullptr)
        return fail(HONE_NULL_POINTER, "description or args is NULL");
    hone_quantize_weights weights{};
    hone_quantize_weights_args call = HONE_QUANTIZE_WEIGHTS_ARGS_INIT;
    if (!read_struct(*description, weights) || !read_struct(*args, call) || call.reserved != 0)
        return fail(HONE_BAD_STRUCT);
    return guarded(where, [&] { return use(weights_from(weights), from_c(call)); });
}

}  // namespace
}  // namespace hone::c_api

using namespace hone::c_api;

hone_status hone_quantize_weights_on_device(hone_runtime* runtime, const hone_quantize_weights* description,
                                            const hone_quantize_weights_args* args, int64_t out,
                                            void* stream) {
    if (const hone_status status = check_handle(runtime); status != HONE_OK) return status;
    return with_given("hone_quantize_weights_on_device", description, args,
                      [&](const auto& weights, const auto& call) {
                          return on_device(*runtime->runtime, weights, call, out, stream);
                      });
}

hone_status hone_quantize_weights_workspace(hone_runtime* runtime, const hone_quantize_weights* description,
                                            int64_t out, size_t* bytes) {
    if (bytes == nullptr) return fail(HONE_NULL_POINTER, "bytes is NULL");
    *bytes = 0;
    if (const hone_status status = check_handle(runtime); status != HONE_OK) return status;
    constexpr hone_quantize_weights_args none = HONE_QUANTIZE_WEIGHTS_ARGS_INIT;
    return with_given(
        "hone_quantize_weights_workspace", description, &none, [&](const auto& weights, const auto&) {
            const std::int64_t needed = hone::quantize_on_device_workspace(*runtime->runtime, weights, out);
            *bytes = static_cast<std::size_t>(needed);
            return HONE_OK;
        });
}

hone_status hone_quantize_weights_on_host(const hone_quantize_weights* description,
                                          const hone_quantize_weights_args* args, int64_t out,
                                          int32_t threads) {
    return with_given(
        "hone_quantize_weights_on_host", description, args,
        [&](const auto& weights, const auto& call) { return on_host(weights, call, out, threads); });
}
