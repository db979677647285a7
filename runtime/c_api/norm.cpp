#include <type_traits>

#include "runtime/c_api/handle.h"
#include "runtime/c_api/struct_size.h"
#include "runtime/report_json.h"

namespace hone::c_api {
namespace {

[[noreturn]] void refuse(const char* field, std::int64_t value, const char* allowed) {
    throw Error(std::string(field) + " is " + std::to_string(value) + "; allowed: " + allowed, "", "",
                ErrorKind::bad_argument);
}

Dtype dtype_from(std::int32_t given) {
    switch (given) {
        case HONE_FP32: return Dtype::fp32;
        case HONE_FP16: return Dtype::fp16;
        case HONE_BF16: return Dtype::bf16;
        default: refuse("dtype", given, "HONE_FP32 (0), HONE_FP16 (1), HONE_BF16 (2)");
    }
}

NormOutput output_from(std::int32_t given) {
    switch (given) {
        case HONE_OUTPUT_SAME: return NormOutput::same;
        case HONE_OUTPUT_INT8: return NormOutput::int8;
        case HONE_OUTPUT_FP8: return NormOutput::fp8;
        default: refuse("output", given, "HONE_OUTPUT_SAME (0), HONE_OUTPUT_INT8 (1), HONE_OUTPUT_FP8 (2)");
    }
}

bool flag_from(const char* field, std::int32_t given) {
    if (given != 0 && given != 1) refuse(field, given, "0, 1");
    return given == 1;
}

RmsNorm description_from(const hone_rms_norm& norm) {
    return {.hidden = norm.hidden,
            .max_rows = norm.max_rows,
            .dtype = dtype_from(norm.dtype),
            .output = output_from(norm.output),
            .residual = flag_from("residual", norm.residual)};
}

LayerNorm description_from(const hone_layer_norm& norm) {
    if (norm.reserved != 0) refuse("reserved", norm.reserved, "0");
    return {.hidden = norm.hidden,
            .max_rows = norm.max_rows,
            .dtype = dtype_from(norm.dtype),
            .output = output_from(norm.output),
            .residual = flag_from("residual", norm.residual),
            .bias = flag_from("bias", norm.bias)};
}

RmsNormBackward description_from(const hone_rms_norm_backward& norm) {
    if (norm.reserved != 0) refuse("reserved", norm.reserved, "0");
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

template <class Description>
hone_status prepare(hone_runtime* runtime, const Description* norm, hone_operator** op,
                    const char* where) noexcept {
    if (norm == nullptr) return fail(HONE_NULL_POINTER);
    Description known{};
    if (!read_struct(*norm, known)) return fail(HONE_BAD_STRUCT);
    return prepare_into(runtime, op, where,
                        [&](Runtime& maker) { return maker.prepare(description_from(known)); });
}

template <class Description>
hone_status explain(const hone_runtime* runtime, const Description* norm, std::int64_t rows,
                    hone_text_format format, char* text, std::size_t capacity, std::size_t* length,
                    const char* where) noexcept {
    if (const hone_status status = check_handle(runtime); status != HONE_OK) return status;
    if (norm == nullptr) return fail(HONE_NULL_POINTER);
    Description known{};
    if (!read_struct(*norm, known)) return fail(HONE_BAD_STRUCT);
    return guarded(where, [&] {
        const Explanation explanation = runtime->runtime->explain(description_from(known), rows);
        return hand_out(runtime::to_text(explanation, format == HONE_JSON), text, capacity, length);
    });
}

hone_status status_of(const hone_operator& op, Status status) noexcept {
    return run_status(status, [&] { return op.runtime->last_launch_error(); });
}

hone_status run(const hone_operator& op, CUstream_st* stream, const hone_norm_args& args,
                std::int64_t rows) noexcept {
    if (const auto* rms = std::get_if<RmsNormKernel>(&op.kernel))
        return status_of(op, rms->run(stream, args_from<RmsNormArgs>(args), rows));
    if (const auto* layer = std::get_if<LayerNormKernel>(&op.kernel))
        return status_of(op, layer->run(stream, args_from<LayerNormArgs>(args), rows));
    return fail(HONE_BAD_HANDLE);
}

hone_status run(const hone_operator& op, CUstream_st* stream, const hone_rms_norm_backward_args& args,
                std::int64_t rows) noexcept {
    const auto* backward = std::get_if<RmsNormBackwardKernel>(&op.kernel);
    return backward == nullptr ? fail(HONE_BAD_HANDLE)
                               : status_of(op, backward->run(stream, args_from(args), rows));
}

/// run() of arguments that a caller gives; `known` holds the defaults.
template <class Args>
hone_status run_given(const hone_operator* op, void* stream, const Args* args, Args known,
                      std::int64_t rows) noexcept {
    if (const hone_status status = check_handle(op); status != HONE_OK) return status;
    if (args == nullptr) return fail(HONE_NULL_POINTER);
    const auto queue = static_cast<CUstream_st*>(stream);
    if (args->struct_size == sizeof(Args)) return run(*op, queue, *args, rows);
    return read_struct(*args, known) ? run(*op, queue, known, rows) : fail(HONE_BAD_STRUCT);
}

}  // namespace
}  // namespace hone::c_api

using namespace hone::c_api;

hone_status hone_rms_norm_prepare(hone_runtime* runtime, const hone_rms_norm* norm, hone_operator** op) {
    return prepare(runtime, norm, op, "hone_rms_norm_prepare");
}

hone_status hone_layer_norm_prepare(hone_runtime* runtime, const hone_layer_norm* norm, hone_operator** op) {
    return prepare(runtime, norm, op, "hone_layer_norm_prepare");
}

hone_status hone_norm_run(const hone_operator* op, void* stream, const hone_norm_args* args, int64_t rows) {
    return run_given(op, stream, args, hone_norm_args HONE_NORM_ARGS_INIT, rows);
}

hone_status hone_rms_norm_backward_prepare(hone_runtime* runtime, const hone_rms_norm_backward* norm,
                                           hone_operator** op) {
    return prepare(runtime, norm, op, "hone_rms_norm_backward_prepare");
}

hone_status hone_rms_norm_backward_run(const hone_operator* op, void* stream,
                                       const hone_rms_norm_backward_args* args, int64_t rows) {
    return run_given(op, stream, args, hone_rms_norm_backward_args HONE_RMS_NORM_BACKWARD_ARGS_INIT, rows);
}

hone_status hone_rms_norm_explain(const hone_runtime* runtime, const hone_rms_norm* norm, int64_t rows,
                                  hone_text_format format, char* text, size_t capacity, size_t* length) {
    return explain(runtime, norm, rows, format, text, capacity, length, "hone_rms_norm_explain");
}

hone_status hone_layer_norm_explain(const hone_runtime* runtime, const hone_layer_norm* norm, int64_t rows,
                                    hone_text_format format, char* text, size_t capacity, size_t* length) {
    return explain(runtime, norm, rows, format, text, capacity, length, "hone_layer_norm_explain");
}

hone_status hone_rms_norm_backward_explain(const hone_runtime* runtime, const hone_rms_norm_backward* norm,
                                           int64_t rows, hone_text_format format, char* text, size_t capacity,
                                           size_t* length) {
    return explain(runtime, norm, rows, format, text, capacity, length, "hone_rms_norm_backward_explain");
}
