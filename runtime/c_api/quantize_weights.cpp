#include "hone/quantize.h"
#include "runtime/c_api/operator.h"
#include "runtime/operators/quantize_weights_problem.h"

namespace hone::c_api {
namespace {

QuantizeWeights weights_from(const hone_quantize_weights& given) {
    check_reserved(given.reserved);
    const QuantFormat format = format_from(given.format);
    return {.in = given.in,
            .max_out = given.max_out,
            .dtype = dtype_from(given.dtype),
            .format = format,
            .group = given.group,
            .zeros = flag_from("zeros", given.zeros),
            .one_scale = flag_from("one_scale", given.one_scale),
            .scale_dtype = format == QuantFormat::w4a16 ? dtype_from(given.scale_dtype) : Dtype::fp32,
            .search = flag_from("search", given.search)};
}

QuantizeWeightsArgs args_from(const hone_quantize_weights_args& args) {
    return {.weight = args.weight,
            .codes = args.codes,
            .scales = args.scales,
            .zeros = args.zeros,
            .workspace = args.workspace,
            .weight_stride = args.weight_stride};
}

template <class T>
std::span<T> bytes_of(void* from, std::int64_t count) {
    return {static_cast<T*>(from), static_cast<std::size_t>(count)};
}

hone_status quantize_on_host(const QuantizeWeights& weights, const QuantizeWeightsArgs& args,
                             std::int64_t out, std::int32_t threads) {
    if (out < 0 || out > weights.max_out) return fail(HONE_BAD_ROWS);
    if (args.weight_stride != 0 && args.weight_stride != weights.in) return fail(HONE_BAD_STRIDE);
    if (out == 0) return HONE_OK;
    const PackedShape shape = runtime::packed_shape(weights, out);
    check(shape);
    const bool is_whole = args.weight != nullptr && args.codes != nullptr && args.scales != nullptr &&
                          (args.zeros != nullptr || !weights.zeros);
    if (!is_whole) return fail(HONE_NULL_POINTER);
    const std::span weight(static_cast<const std::byte*>(args.weight),
                           static_cast<std::size_t>(out * weights.in * size_bytes(weights.dtype)));
    const PackedSpans stored{bytes_of<std::uint8_t>(args.codes, packed_bytes(shape.format, out, weights.in)),
                             bytes_of<std::uint8_t>(args.scales, scale_bytes(shape)),
                             bytes_of<std::uint8_t>(args.zeros, zero_count(shape))};
    quantize_into(weight, weights.dtype, shape, stored, {.search = weights.search, .threads = threads});
    return HONE_OK;
}

}  // namespace
}  // namespace hone::c_api

using namespace hone::c_api;

hone_status hone_quantize_weights_prepare(hone_runtime* runtime, const hone_quantize_weights* weights,
                                          hone_operator** op) {
    return prepare(runtime, weights, op, "hone_quantize_weights_prepare", weights_from);
}

hone_status hone_quantize_weights_run(const hone_operator* op, void* stream,
                                      const hone_quantize_weights_args* args, int64_t out) {
    return run_given(op, args, hone_quantize_weights_args HONE_QUANTIZE_WEIGHTS_ARGS_INIT,
                     [&](const hone_quantize_weights_args& given) {
                         return guarded("hone_quantize_weights_run", [&] {
                             check_reserved(given.reserved);
                             const auto* kernel = std::get_if<hone::QuantizeWeightsKernel>(&op->kernel);
                             if (kernel == nullptr) return fail(HONE_BAD_HANDLE);
                             auto* const on = static_cast<CUstream_st*>(stream);
                             return status_of(*op, kernel->run(on, args_from(given), out));
                         });
                     });
}

hone_status hone_quantize_weights_explain(const hone_runtime* runtime, const hone_quantize_weights* weights,
                                          int64_t out, hone_text_format format, char* text, size_t capacity,
                                          size_t* length) {
    return explain(runtime, weights, out, {format, text, capacity, length}, "hone_quantize_weights_explain",
                   weights_from);
}

hone_status hone_quantize_weights_on_host(const hone_quantize_weights* weights,
                                          const hone_quantize_weights_args* args, int64_t out,
                                          int32_t threads) {
    if (weights == nullptr || args == nullptr) return fail(HONE_NULL_POINTER);
    hone_quantize_weights known{};
    hone_quantize_weights_args given = HONE_QUANTIZE_WEIGHTS_ARGS_INIT;
    if (!read_struct(*weights, known) || !read_struct(*args, given)) return fail(HONE_BAD_STRUCT);
    return guarded("hone_quantize_weights_on_host", [&] {
        check_reserved(given.reserved);
        return quantize_on_host(weights_from(known), args_from(given), out, threads);
    });
}
