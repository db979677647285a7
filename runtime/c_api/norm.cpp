#include <type_traits>

#include "runtime/c_api/operator.h"

namespace hone::c_api {
namespace {

NormOutput output_from(std::int32_t given) {
    switch (given) {
        case HONE_OUTPUT_SAME: return NormOutput::same;
        case HONE_OUTPUT_INT8: return NormOutput::int8;
        case HONE_OUTPUT_FP8: return NormOutput::fp8;
        default: refuse("output", given, "HONE_OUTPUT_SAME (0), HONE_OUTPUT_INT8 (1), HONE_OUTPUT_FP8 (2)");
    }
}

RmsNorm description_from(const hone_rms_norm& norm) {
    return {.hidden = norm.hidden,
            .max_rows = norm.max_rows,
            .dtype = dtype_from(norm.dtype),
            .output = output_from(norm.output),
            .residual = flag_from("residual", norm.residual)};
}

LayerNorm description_from(const hone_layer_norm& norm) {
    check_reserved(norm.reserved);
    return {.hidden = norm.hidden,
            .max_rows = norm.max_rows,
            .dtype = dtype_from(norm.dtype),
            .output = output_from(norm.output),
            .residual = flag_from("residual", norm.residual),
            .bias = flag_from("bias", norm.bias)};
}

RmsNormBackward description_from(const hone_rms_norm_backward& norm) {
    check_reserved(norm.reserved);
    return {.hidden = norm.hidden,
            .max_rows = norm.max_rows,
            .dtype = dtype_from(norm.dtype),
            .residual = flag_from("residual", norm.residual)};
}

template <class Args>
Args args_from(const hone_norm_args& args) {
    Args result{.x = args.x, .residual = args.residual, .weight = args.weight};
    if constexpr (std::is_same_v<Args, LayerNormArgs>) result.bias = args.bias;
    result.out = args.out;
    result.sum = args.sum;
    result.scale = args.scale;
    result.x_stride = args.x_stride;
    result.residual_stride = args.residual_stride;
    result.out_stride = args.out_stride;
    result.sum_stride = args.sum_stride;
    result.epsilon = args.epsilon;
    return result;
}

RmsNormBackwardArgs args_from(const hone_rms_norm_backward_args& args) {
    return {.dy = args.dy,
            .x = args.x,
            .weight = args.weight,
            .dsum = args.dsum,
            .dx = args.dx,
            .dweight = args.dweight,
            .workspace = args.workspace,
            .dy_stride = args.dy_stride,
            .x_stride = args.x_stride,
            .dsum_stride = args.dsum_stride,
            .dx_stride = args.dx_stride,
            .epsilon = args.epsilon};
}

/// Both norms take the same struct.
hone_status run_norm(const hone_operator& op, void* stream, const hone_norm_args& args,
                     std::int64_t rows) noexcept {
    if (std::holds_alternative<RmsNormKernel>(op.kernel))
        return run_as<RmsNormKernel>(op, stream, args_from<RmsNormArgs>(args), rows);
    return run_as<LayerNormKernel>(op, stream, args_from<LayerNormArgs>(args), rows);
}

constexpr auto describe = [](const auto& given) { return description_from(given); };

}  // namespace
}  // namespace hone::c_api

using namespace hone::c_api;

hone_status hone_rms_norm_prepare(hone_runtime* runtime, const hone_rms_norm* norm, hone_operator** op) {
    return prepare(runtime, norm, op, "hone_rms_norm_prepare", describe);
}

hone_status hone_layer_norm_prepare(hone_runtime* runtime, const hone_layer_norm* norm, hone_operator** op) {
    return prepare(runtime, norm, op, "hone_layer_norm_prepare", describe);
}

hone_status hone_norm_run(const hone_operator* op, void* stream, const hone_norm_args* args, int64_t rows) {
    return run_given(op, args, hone_norm_args HONE_NORM_ARGS_INIT,
                     [&](const hone_norm_args& given) { return run_norm(*op, stream, given, rows); });
}

hone_status hone_rms_norm_backward_prepare(hone_runtime* runtime, const hone_rms_norm_backward* norm,
                                           hone_operator** op) {
    return prepare(runtime, norm, op, "hone_rms_norm_backward_prepare", describe);
}

hone_status hone_rms_norm_backward_run(const hone_operator* op, void* stream,
                                       const hone_rms_norm_backward_args* args, int64_t rows) {
    return run_given(op, args, hone_rms_norm_backward_args HONE_RMS_NORM_BACKWARD_ARGS_INIT,
                     [&](const hone_rms_norm_backward_args& given) {
                         return run_as<hone::RmsNormBackwardKernel>(*op, stream, args_from(given), rows);
                     });
}

hone_status hone_rms_norm_explain(const hone_runtime* runtime, const hone_rms_norm* norm, int64_t rows,
                                  hone_text_format format, char* text, size_t capacity, size_t* length) {
    return explain(runtime, norm, rows, {format, text, capacity, length}, "hone_rms_norm_explain", describe);
}

hone_status hone_layer_norm_explain(const hone_runtime* runtime, const hone_layer_norm* norm, int64_t rows,
                                    hone_text_format format, char* text, size_t capacity, size_t* length) {
    return explain(runtime, norm, rows, {format, text, capacity, length}, "hone_layer_norm_explain",
                   describe);
}

hone_status hone_rms_norm_backward_explain(const hone_runtime* runtime, const hone_rms_norm_backward* norm,
                                           int64_t rows, hone_text_format format, char* text, size_t capacity,
                                           size_t* length) {
    return explain(runtime, norm, rows, {format, text, capacity, length}, "hone_rms_norm_backward_explain",
                   describe);
}
