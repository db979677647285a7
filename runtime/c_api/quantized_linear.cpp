#include "runtime/c_api/operator.h"

namespace hone::c_api {
namespace {

QuantizedLinear linear_from(const hone_quantized_linear& given) {
    check_reserved(given.reserved);
    return {.in = given.in,
            .out = given.out,
            .max_tokens = given.max_tokens,
            .dtype = dtype_from(given.dtype),
            .format = format_from(given.format),
            .group = given.group,
            .zeros = flag_from("zeros", given.zeros),
            .one_scale = flag_from("one_scale", given.one_scale),
            .quantized_x = flag_from("quantized_x", given.quantized_x),
            .one_x_scale = flag_from("one_x_scale", given.one_x_scale),
            .activation = activation_from(given.activation),
            .bias = flag_from("bias", given.bias),
            .residual = flag_from("residual", given.residual),
            .norm = flag_from("norm", given.norm)};
}

QuantizedFfn ffn_from(const hone_quantized_ffn& given) {
    return {.hidden = given.hidden,
            .intermediate = given.intermediate,
            .max_tokens = given.max_tokens,
            .dtype = dtype_from(given.dtype),
            .format = format_from(given.format),
            .group = given.group,
            .zeros = flag_from("zeros", given.zeros),
            .one_scale = flag_from("one_scale", given.one_scale),
            .quantized_x = flag_from("quantized_x", given.quantized_x),
            .one_x_scale = flag_from("one_x_scale", given.one_x_scale),
            .activation = activation_from(given.activation),
            .gated = flag_from("gated", given.gated),
            .bias = flag_from("bias", given.bias),
            .residual = flag_from("residual", given.residual),
            .norm = flag_from("norm", given.norm)};
}

QuantizedLinearArgs args_from(const hone_quantized_linear_args& args) {
    return {.x = args.x,
            .x_scales = args.x_scales,
            .weight = {.codes = args.weight, .scales = args.scales, .zeros = args.zeros},
            .bias = args.bias,
            .residual = args.residual,
            .out = args.out,
            .workspace = args.workspace,
            .x_stride = args.x_stride,
            .x_scale_stride = args.x_scale_stride,
            .weight_stride = args.weight_stride,
            .residual_stride = args.residual_stride,
            .out_stride = args.out_stride,
            .norm_weight = args.norm_weight,
            .epsilon = args.epsilon};
}

QuantizedFfnArgs args_from(const hone_quantized_ffn_args& args) {
    return {.x = args.x,
            .x_scales = args.x_scales,
            .gate = {.codes = args.gate, .scales = args.gate_scales, .zeros = args.gate_zeros},
            .up = {.codes = args.up, .scales = args.up_scales, .zeros = args.up_zeros},
            .down = {.codes = args.down, .scales = args.down_scales, .zeros = args.down_zeros},
            .up_bias = args.up_bias,
            .down_bias = args.down_bias,
            .residual = args.residual,
            .out = args.out,
            .workspace = args.workspace,
            .x_stride = args.x_stride,
            .x_scale_stride = args.x_scale_stride,
            .residual_stride = args.residual_stride,
            .out_stride = args.out_stride,
            .norm_weight = args.norm_weight,
            .epsilon = args.epsilon};
}

}  // namespace
}  // namespace hone::c_api

using namespace hone::c_api;

hone_status hone_quantized_linear_prepare(hone_runtime* runtime, const hone_quantized_linear* linear,
                                          hone_operator** op) {
    return prepare(runtime, linear, op, "hone_quantized_linear_prepare", linear_from);
}

hone_status hone_quantized_linear_run(const hone_operator* op, void* stream,
                                      const hone_quantized_linear_args* args, int64_t tokens) {
    return run_given(op, args, hone_quantized_linear_args HONE_QUANTIZED_LINEAR_ARGS_INIT,
                     [&](const hone_quantized_linear_args& given) {
                         return run_as<hone::QuantizedLinearKernel>(*op, stream, args_from(given), tokens);
                     });
}

hone_status hone_quantized_linear_explain(const hone_runtime* runtime, const hone_quantized_linear* linear,
                                          int64_t tokens, hone_text_format format, char* text,
                                          size_t capacity, size_t* length) {
    return explain(runtime, linear, tokens, {format, text, capacity, length}, "hone_quantized_linear_explain",
                   linear_from);
}

hone_status hone_quantized_ffn_prepare(hone_runtime* runtime, const hone_quantized_ffn* ffn,
                                       hone_operator** op) {
    return prepare(runtime, ffn, op, "hone_quantized_ffn_prepare", ffn_from);
}

hone_status hone_quantized_ffn_run(const hone_operator* op, void* stream, const hone_quantized_ffn_args* args,
                                   int64_t tokens) {
    return run_given(op, args, hone_quantized_ffn_args HONE_QUANTIZED_FFN_ARGS_INIT,
                     [&](const hone_quantized_ffn_args& given) {
                         return run_as<hone::QuantizedFfnKernel>(*op, stream, args_from(given), tokens);
                     });
}

hone_status hone_quantized_ffn_explain(const hone_runtime* runtime, const hone_quantized_ffn* ffn,
                                       int64_t tokens, hone_text_format format, char* text, size_t capacity,
                                       size_t* length) {
    return explain(runtime, ffn, tokens, {format, text, capacity, length}, "hone_quantized_ffn_explain",
                   ffn_from);
}
