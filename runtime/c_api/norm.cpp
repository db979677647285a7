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

hone_status run(const hone_operator& op, void* stream, const hone_norm_args& args,
                std::int64_t rows) noexcept {
    const auto queue = static_cast<CUstream_st*>(stream);
    const auto status_of = [&](Status status) {
        return run_status(status, [&] { return op.runtime->last_launch_error(); });
    };
    if (const auto* rms = std::get_if<RmsNormKernel>(&op.kernel))
        return status_of(rms->run(queue, args_from<RmsNormArgs>(args), rows));
    if (const auto* layer = std::get_if<LayerNormKernel>(&op.kernel))
        return status_of(layer->run(queue, args_from<LayerNormArgs>(args), rows));
    return fail(HONE_BAD_HANDLE);
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
    if (const hone_status status = check_handle(op); status != HONE_OK) return status;
    if (args == nullptr) return fail(HONE_NULL_POINTER);
    if (args->struct_size == sizeof(hone_norm_args)) return run(*op, stream, *args, rows);
    hone_norm_args known = HONE_NORM_ARGS_INIT;
    return read_struct(*args, known) ? run(*op, stream, known, rows) : fail(HONE_BAD_STRUCT);
}

hone_status hone_rms_norm_explain(const hone_runtime* runtime, const hone_rms_norm* norm, int64_t rows,
                                  hone_text_format format, char* text, size_t capacity, size_t* length) {
    return explain(runtime, norm, rows, format, text, capacity, length, "hone_rms_norm_explain");
}

hone_status hone_layer_norm_explain(const hone_runtime* runtime, const hone_layer_norm* norm, int64_t rows,
                                    hone_text_format format, char* text, size_t capacity, size_t* length) {
    return explain(runtime, norm, rows, format, text, capacity, length, "hone_layer_norm_explain");
}
