#include "runtime/c_api/operator.h"

namespace hone::c_api {
namespace {

Linear linear_from(const hone_linear& given) {
    return {.in = given.in,
            .out = given.out,
            .max_tokens = given.max_tokens,
            .dtype = dtype_from(given.dtype),
            .activation = activation_from(given.activation),
            .bias = flag_from("bias", given.bias),
            .residual = flag_from("residual", given.residual),
            .norm = flag_from("norm", given.norm)};
}

FusedFfn ffn_from(const hone_fused_ffn& given) {
    return {.hidden = given.hidden,
            .intermediate = given.intermediate,
            .max_tokens = given.max_tokens,
            .dtype = dtype_from(given.dtype),
            .activation = activation_from(given.activation),
            .gated = flag_from("gated", given.gated),
            .bias = flag_from("bias", given.bias),
            .residual = flag_from("residual", given.residual),
            .norm = flag_from("norm", given.norm)};
}

LinearArgs args_from(const hone_linear_args& args) {
    return {.x = args.x,
            .weight = args.weight,
            .bias = args.bias,
            .residual = args.residual,
            .out = args.out,
            .workspace = args.workspace,
            .x_stride = args.x_stride,
            .weight_stride = args.weight_stride,
            .residual_stride = args.residual_stride,
            .out_stride = args.out_stride,
            .norm_weight = args.norm_weight,
            .epsilon = args.epsilon};
}

FusedFfnArgs args_from(const hone_fused_ffn_args& args) {
    return {.x = args.x,
            .gate = args.gate,
            .up = args.up,
            .up_bias = args.up_bias,
            .down = args.down,
            .down_bias = args.down_bias,
            .residual = args.residual,
            .out = args.out,
            .workspace = args.workspace,
            .x_stride = args.x_stride,
            .residual_stride = args.residual_stride,
            .out_stride = args.out_stride,
            .norm_weight = args.norm_weight,
            .epsilon = args.epsilon};
}

}  // namespace
}  // namespace hone::c_api

using namespace hone::c_api;

hone_status hone_linear_prepare(hone_runtime* runtime, const hone_linear* linear, hone_operator** op) {
    return prepare(runtime, linear, op, "hone_linear_prepare", linear_from);
}

hone_status hone_linear_run(const hone_operator* op, void* stream, const hone_linear_args* args,
                            int64_t tokens) {
    return run_given(op, args, hone_linear_args HONE_LINEAR_ARGS_INIT, [&](const hone_linear_args& given) {
        return run_as<hone::LinearKernel>(*op, stream, args_from(given), tokens);
    });
}

hone_status hone_linear_explain(const hone_runtime* runtime, const hone_linear* linear, int64_t tokens,
                                hone_text_format format, char* text, size_t capacity, size_t* length) {
    return explain(runtime, linear, tokens, {format, text, capacity, length}, "hone_linear_explain",
                   linear_from);
}

hone_status hone_fused_ffn_prepare(hone_runtime* runtime, const hone_fused_ffn* ffn, hone_operator** op) {
    return prepare(runtime, ffn, op, "hone_fused_ffn_prepare", ffn_from);
}

hone_status hone_fused_ffn_run(const hone_operator* op, void* stream, const hone_fused_ffn_args* args,
                               int64_t tokens) {
    return run_given(op, args, hone_fused_ffn_args HONE_FUSED_FFN_ARGS_INIT,
                     [&](const hone_fused_ffn_args& given) {
                         return run_as<hone::FusedFfnKernel>(*op, stream, args_from(given), tokens);
                     });
}

hone_status hone_fused_ffn_explain(const hone_runtime* runtime, const hone_fused_ffn* ffn, int64_t tokens,
                                   hone_text_format format, char* text, size_t capacity, size_t* length) {
    return explain(runtime, ffn, tokens, {format, text, capacity, length}, "hone_fused_ffn_explain",
                   ffn_from);
}
