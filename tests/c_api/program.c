/* A C11 program that uses all of libhone.so the way an engine would, on the fake driver. Prints what does not
 * hold and ends with 1. */
#include <hone.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const char* differing_initializer(void); /* of initializers.c */

static int failures;

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "%s:%d: %s\n    last error: %s\n", __FILE__, __LINE__, #condition, \
                    hone_last_error());                                                        \
            ++failures;                                                                        \
        }                                                                                      \
    } while (0)

static void* address(size_t mebibyte) { return (void*)(mebibyte << 20); }

static int launches(void) {
    void* fake = dlopen(getenv("HONE_CUDA_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
    int (*count)(void) = NULL;
    *(void**)&count = dlsym(fake, "fake_cuda_launch_count");
    return count();
}

static hone_norm_args usual_args(void) {
    hone_norm_args args = HONE_NORM_ARGS_INIT;
    args.x = address(1);
    args.weight = address(2);
    args.out = address(3);
    return args;
}

static hone_operator* prepared_norm(hone_runtime* runtime) {
    hone_rms_norm norm = HONE_RMS_NORM_INIT;
    norm.hidden = 4096;
    norm.max_rows = 64;
    hone_operator* op = NULL;
    CHECK(hone_rms_norm_prepare(runtime, &norm, &op) == HONE_OK);
    return op;
}

static void check_backward(hone_runtime* runtime) {
    hone_rms_norm_backward norm = HONE_RMS_NORM_BACKWARD_INIT;
    norm.hidden = 4096;
    norm.max_rows = 64;
    norm.residual = 1;
    hone_operator* op = NULL;
    CHECK(hone_rms_norm_backward_prepare(runtime, &norm, &op) == HONE_OK);
    size_t bytes = 0;
    CHECK(hone_operator_workspace(op, 64, &bytes) == HONE_OK && bytes >= 4096 * sizeof(float));
    CHECK(hone_operator_workspace(op, 65, &bytes) == HONE_BAD_ARGUMENT && bytes == 0);
    CHECK(strstr(hone_last_error(), "rows is 65; allowed: 0 to 64") != NULL);
    CHECK(hone_operator_workspace(op, 64, NULL) == HONE_NULL_POINTER);

    hone_rms_norm_backward_args args = HONE_RMS_NORM_BACKWARD_ARGS_INIT;
    args.dy = address(1);
    args.x = address(2);
    args.weight = address(3);
    args.dx = address(5);
    args.dweight = address(6);
    args.workspace = address(7);
    CHECK(hone_rms_norm_backward_run(op, NULL, &args, 16) == HONE_NULL_POINTER); /* dsum */
    args.dsum = address(4);
    const int before = launches();
    CHECK(hone_rms_norm_backward_run(op, NULL, &args, 16) == HONE_OK);
    CHECK(launches() == before + 2);
    hone_norm_args forward = usual_args();
    CHECK(hone_norm_run(op, NULL, &forward, 16) == HONE_BAD_HANDLE);
    hone_operator_destroy(op);

    op = prepared_norm(runtime);
    CHECK(hone_rms_norm_backward_run(op, NULL, &args, 16) == HONE_BAD_HANDLE);
    CHECK(hone_operator_workspace(op, 64, &bytes) == HONE_OK && bytes == 0);
    hone_operator_destroy(op);

    size_t length = 0;
    CHECK(hone_rms_norm_backward_explain(runtime, &norm, 16, HONE_JSON, NULL, 0, &length) == HONE_OK);
    const hone_text_format unknown = (hone_text_format)-1;
    CHECK(hone_rms_norm_backward_explain(runtime, &norm, 16, unknown, NULL, 0, &length) == HONE_BAD_ARGUMENT);
    CHECK(strstr(hone_last_error(), "format is -1; allowed: ") != NULL);
    CHECK(length > 100);
    norm.reserved = 1;
    CHECK(hone_rms_norm_backward_prepare(runtime, &norm, &op) == HONE_BAD_ARGUMENT);
}

static void check_linear(hone_runtime* runtime) {
    hone_linear linear = HONE_LINEAR_INIT;
    linear.in = 256;
    linear.out = 320;
    linear.max_tokens = 64;
    linear.activation = HONE_GELU_TANH;
    linear.bias = 1;
    hone_operator* op = NULL;
    CHECK(hone_linear_prepare(runtime, &linear, &op) == HONE_OK);
    hone_linear_args args = HONE_LINEAR_ARGS_INIT;
    args.x = address(1);
    args.weight = address(2);
    args.out = address(3);
    args.workspace = address(4);
    CHECK(hone_linear_run(op, NULL, &args, 16) == HONE_NULL_POINTER);
    CHECK(strcmp(hone_last_error(), "bias is a null pointer") == 0);
    args.bias = address(5);
    CHECK(hone_linear_run(op, NULL, &args, 16) == HONE_OK);
    CHECK(hone_linear_run(op, NULL, &args, 65) == HONE_BAD_ROWS);
    args.weight_stride = 255;
    CHECK(hone_linear_run(op, NULL, &args, 16) == HONE_BAD_STRIDE);
    CHECK(strcmp(hone_last_error(), "weight_stride is 255; allowed: 256 or more") == 0);
    hone_operator_destroy(op);
    linear.norm = 1;
    CHECK(hone_linear_prepare(runtime, &linear, &op) == HONE_OK);
    size_t bytes = 0;
    CHECK(hone_operator_workspace(op, 64, &bytes) == HONE_OK && bytes >= 64 * 256 * 2);
    args.weight_stride = 0;
    CHECK(hone_linear_run(op, NULL, &args, 16) == HONE_NULL_POINTER);
    CHECK(strcmp(hone_last_error(), "norm_weight is a null pointer") == 0);
    args.norm_weight = address(6);
    args.epsilon = -1;
    CHECK(hone_linear_run(op, NULL, &args, 16) == HONE_BAD_EPSILON);
    CHECK(strcmp(hone_last_error(), "epsilon is -1; allowed: finite numbers from 0") == 0);
    args.epsilon = 1e-6f;
    CHECK(hone_linear_run(op, NULL, &args, 64) == HONE_OK);
    hone_operator_destroy(op);
    size_t length = 0;
    CHECK(hone_linear_explain(runtime, &linear, 16, HONE_TEXT, NULL, 0, &length) == HONE_OK && length > 50);
    linear.norm = 2;
    CHECK(hone_linear_prepare(runtime, &linear, &op) == HONE_BAD_ARGUMENT);
    CHECK(strstr(hone_last_error(), "norm is 2; allowed: ") != NULL);
    linear.norm = 0;
    linear.activation = 6;
    CHECK(hone_linear_prepare(runtime, &linear, &op) == HONE_BAD_ARGUMENT);
    CHECK(strstr(hone_last_error(), "activation is 6; allowed: ") != NULL);
    linear.activation = HONE_SWIGLU_OAI; /* of experts alone */
    CHECK(hone_linear_prepare(runtime, &linear, &op) == HONE_BAD_ARGUMENT);
    CHECK(strstr(hone_last_error(), "'activation' has the value 'swiglu_oai'; allowed: ") != NULL);
    linear.activation = HONE_SILU;
    linear.in = 0;
    CHECK(hone_linear_prepare(runtime, &linear, &op) == HONE_BAD_ARGUMENT);
    CHECK(strstr(hone_last_error(), "'in' has the value '0'") != NULL);
}

static void check_quantized_linear(hone_runtime* runtime) {
    hone_quantized_linear linear = HONE_QUANTIZED_LINEAR_INIT;
    linear.in = 256;
    linear.out = 320;
    linear.max_tokens = 64;
    linear.group = 128;
    linear.zeros = 1;
    hone_operator* op = NULL;
    CHECK(hone_quantized_linear_prepare(runtime, &linear, &op) == HONE_OK);
    hone_quantized_linear_args args = HONE_QUANTIZED_LINEAR_ARGS_INIT;
    args.x = address(1);
    args.weight = address(2);
    args.scales = address(3);
    args.out = address(4);
    args.workspace = address(5);
    CHECK(hone_quantized_linear_run(op, NULL, &args, 16) == HONE_NULL_POINTER); /* zeros */
    args.zeros = address(6);
    args.weight_stride = 1; /* has no meaning */
    CHECK(hone_quantized_linear_run(op, NULL, &args, 16) == HONE_OK);
    CHECK(hone_quantized_linear_run(op, NULL, &args, 65) == HONE_BAD_ROWS);
    args.x_stride = 255;
    CHECK(hone_quantized_linear_run(op, NULL, &args, 16) == HONE_BAD_STRIDE);
    hone_linear_args other = HONE_LINEAR_ARGS_INIT;
    CHECK(hone_linear_run(op, NULL, &other, 16) == HONE_BAD_HANDLE);
    size_t length = 0;
    CHECK(hone_operator_report(op, HONE_JSON, NULL, 0, &length) == HONE_OK && length > 50);
    hone_operator_destroy(op);
    CHECK(hone_quantized_linear_explain(runtime, &linear, 16, HONE_TEXT, NULL, 0, &length) == HONE_OK);
    CHECK(length > 50);
    linear.format = 4;
    CHECK(hone_quantized_linear_prepare(runtime, &linear, &op) == HONE_BAD_ARGUMENT);
    CHECK(strstr(hone_last_error(), "format is 4; allowed: HONE_QUANT_W4A16 (0)") != NULL);
    linear.format = HONE_QUANT_W8A16;
    CHECK(hone_quantized_linear_prepare(runtime, &linear, &op) == HONE_BAD_ARGUMENT);
    CHECK(strstr(hone_last_error(), "group=128: codes of 8 bits have a scale a row; allowed: 0") != NULL);
    linear.reserved = 1;
    CHECK(hone_quantized_linear_prepare(runtime, &linear, &op) == HONE_BAD_ARGUMENT);
}

static void check_quantize_weights(hone_runtime* runtime) {
    hone_quantize_weights weights = HONE_QUANTIZE_WEIGHTS_INIT;
    weights.in = 3;
    weights.max_out = 2;
    weights.dtype = HONE_FP32;
    weights.format = HONE_QUANT_W8A8;
    size_t bytes = 0;
    CHECK(hone_quantize_weights_workspace(runtime, &weights, 2, &bytes) == HONE_OK && bytes == 256 + 2 * 4);
    CHECK(hone_quantize_weights_workspace(runtime, &weights, 3, &bytes) == HONE_BAD_ARGUMENT && bytes == 0);
    hone_quantize_weights_args args = HONE_QUANTIZE_WEIGHTS_ARGS_INIT;
    args.weight = address(1);
    args.codes = address(2);
    args.scales = address(3);
    CHECK(hone_quantize_weights_on_device(runtime, &weights, &args, 2, NULL) == HONE_NULL_POINTER);
    CHECK(strcmp(hone_last_error(), "workspace is a null pointer") == 0);
    args.workspace = address(4);
    CHECK(hone_quantize_weights_on_device(runtime, &weights, &args, 3, NULL) == HONE_BAD_ROWS);
    CHECK(hone_quantize_weights_on_device(runtime, &weights, &args, 0, NULL) == HONE_OK);
    args.weight_stride = 2;
    CHECK(hone_quantize_weights_on_device(runtime, &weights, &args, 2, NULL) == HONE_BAD_STRIDE);
    CHECK(strcmp(hone_last_error(), "weight_stride is 2; allowed: 3 or more") == 0);
    CHECK(hone_quantize_weights_on_device(NULL, &weights, &args, 2, NULL) == HONE_BAD_HANDLE);
    args.reserved = 1;
    CHECK(hone_quantize_weights_on_device(runtime, &weights, &args, 2, NULL) == HONE_BAD_STRUCT);
    args.reserved = 0;
    weights.one_scale = 2;
    CHECK(hone_quantize_weights_on_device(runtime, &weights, &args, 2, NULL) == HONE_BAD_ARGUMENT);
}

static void check_quantize_on_host(void) {
    float weight[6] = {127, -63, 0.4f, 0, -254, 3};
    signed char codes[6];
    float scales[2];
    hone_quantize_weights weights = HONE_QUANTIZE_WEIGHTS_INIT;
    weights.in = 3;
    weights.max_out = 2;
    weights.dtype = HONE_FP32;
    weights.format = HONE_QUANT_W8A8;
    hone_quantize_weights_args args = HONE_QUANTIZE_WEIGHTS_ARGS_INIT;
    args.weight = weight;
    args.codes = codes;
    CHECK(hone_quantize_weights_on_host(&weights, &args, 2, 1) == HONE_NULL_POINTER); /* scales */
    args.scales = scales;
    CHECK(hone_quantize_weights_on_host(&weights, &args, 3, 1) == HONE_BAD_ROWS);
    CHECK(hone_quantize_weights_on_host(&weights, &args, 2, 1) == HONE_OK);
    CHECK(codes[0] == 127 && codes[1] == -63 && codes[2] == 0 && codes[4] == -127 && codes[5] == 2);
    CHECK(scales[0] == 1 && scales[1] == 2);
    weight[5] = 1e38f * 10;
    CHECK(hone_quantize_weights_on_host(&weights, &args, 2, 1) == HONE_BAD_ARGUMENT);
    CHECK(strstr(hone_last_error(), "weight [1, 2] is inf; allowed: finite numbers") != NULL);
    args.weight_stride = 4;
    CHECK(hone_quantize_weights_on_host(&weights, &args, 2, 1) == HONE_BAD_STRIDE);
    args.weight_stride = 0;
    CHECK(hone_quantize_weights_on_host(&weights, &args, 2, -1) == HONE_BAD_ARGUMENT);
    weights.struct_size = 4;
    CHECK(hone_quantize_weights_on_host(&weights, &args, 2, 1) == HONE_BAD_STRUCT);
}

static void check_one_scale(hone_runtime* runtime) {
    hone_quantized_linear linear = HONE_QUANTIZED_LINEAR_INIT;
    linear.in = 256;
    linear.out = 320;
    linear.max_tokens = 64;
    linear.format = HONE_QUANT_W8A8;
    linear.quantized_x = 1;
    hone_operator* op = NULL;
    CHECK(hone_quantized_linear_prepare(runtime, &linear, &op) == HONE_OK);
    hone_quantized_linear_args args = HONE_QUANTIZED_LINEAR_ARGS_INIT;
    args.x = address(1);
    args.weight = address(2);
    args.scales = address(3);
    args.out = address(4);
    args.workspace = address(5);
    CHECK(hone_quantized_linear_run(op, NULL, &args, 16) == HONE_NULL_POINTER); /* x_scales */
    args.x_scales = (const float*)address(6);
    CHECK(hone_quantized_linear_run(op, NULL, &args, 16) == HONE_OK);
    args.x_scale_stride = -1;
    CHECK(hone_quantized_linear_run(op, NULL, &args, 16) == HONE_BAD_STRIDE);
    hone_operator_destroy(op);
    linear.one_scale = 1;
    linear.one_x_scale = 1;
    CHECK(hone_quantized_linear_prepare(runtime, &linear, &op) == HONE_OK);
    CHECK(hone_quantized_linear_run(op, NULL, &args, 16) == HONE_OK);
    hone_operator_destroy(op);
    linear.quantized_x = 0;
    CHECK(hone_quantized_linear_prepare(runtime, &linear, &op) == HONE_BAD_ARGUMENT);
    CHECK(strstr(hone_last_error(), "one_x_scale is for quantized_x=yes with group=0") != NULL);
}

static void check_quantized_ffn(hone_runtime* runtime) {
    hone_quantized_ffn ffn = HONE_QUANTIZED_FFN_INIT;
    ffn.hidden = 256;
    ffn.intermediate = 640;
    ffn.max_tokens = 64;
    ffn.format = HONE_QUANT_W8A16;
    ffn.residual = 1;
    hone_operator* op = NULL;
    CHECK(hone_quantized_ffn_prepare(runtime, &ffn, &op) == HONE_OK);
    size_t bytes = 0;
    CHECK(hone_operator_workspace(op, 64, &bytes) == HONE_OK && bytes >= 64 * 640 * 2);
    hone_quantized_ffn_args args = HONE_QUANTIZED_FFN_ARGS_INIT;
    args.x = args.residual = address(1);
    args.gate = address(2);
    args.gate_scales = address(3);
    args.up = address(4);
    args.up_scales = address(5);
    args.down = address(6);
    args.out = address(7);
    args.workspace = address(8);
    CHECK(hone_quantized_ffn_run(op, NULL, &args, 16) == HONE_NULL_POINTER); /* down_scales */
    args.down_scales = address(9);
    CHECK(hone_quantized_ffn_run(op, NULL, &args, 16) == HONE_OK);
    size_t length = 0;
    CHECK(hone_operator_report(op, HONE_JSON, NULL, 0, &length) == HONE_OK && length > 100);
    hone_operator_destroy(op);
    CHECK(hone_quantized_ffn_explain(runtime, &ffn, 16, HONE_JSON, NULL, 0, &length) == HONE_OK);
    CHECK(length > 100);
    ffn.bias = 1;
    CHECK(hone_quantized_ffn_prepare(runtime, &ffn, &op) == HONE_BAD_ARGUMENT);
    CHECK(strstr(hone_last_error(), "gated=yes has no bias") != NULL);
}

static void check_ffn(hone_runtime* runtime) {
    hone_fused_ffn ffn = HONE_FUSED_FFN_INIT;
    ffn.hidden = 256;
    ffn.intermediate = 640;
    ffn.max_tokens = 64;
    ffn.residual = 1;
    hone_operator* op = NULL;
    CHECK(hone_fused_ffn_prepare(runtime, &ffn, &op) == HONE_OK);
    size_t bytes = 0;
    CHECK(hone_operator_workspace(op, 64, &bytes) == HONE_OK && bytes >= 64 * 640 * 2);
    CHECK(hone_operator_workspace(op, 65, &bytes) == HONE_BAD_ARGUMENT);

    hone_fused_ffn_args args = HONE_FUSED_FFN_ARGS_INIT;
    args.x = address(1);
    args.gate = address(2);
    args.up = address(3);
    args.down = address(4);
    args.residual = address(5);
    args.out = address(6);
    const int before = launches();
    CHECK(hone_fused_ffn_run(op, NULL, &args, 16) == HONE_NULL_POINTER); /* workspace */
    args.workspace = address(7);
    args.out = (char*)address(6) + 1;
    CHECK(hone_fused_ffn_run(op, NULL, &args, 16) == HONE_MISALIGNED); /* of the second half */
    CHECK(launches() == before);
    args.out = address(6);
    CHECK(hone_fused_ffn_run(op, NULL, &args, 16) == HONE_OK);
    CHECK(launches() >= before + 2);
    CHECK(hone_fused_ffn_run(op, NULL, &args, 65) == HONE_BAD_ROWS);
    CHECK(hone_fused_ffn_run(op, NULL, &args, 0) == HONE_OK);
    hone_operator* normed = NULL;
    ffn.norm = 1;
    CHECK(hone_fused_ffn_prepare(runtime, &ffn, &normed) == HONE_OK);
    CHECK(hone_fused_ffn_run(normed, NULL, &args, 16) == HONE_NULL_POINTER); /* norm_weight */
    args.norm_weight = address(8);
    args.residual = args.out = address(1); /* out = x + ffn(norm(x)), in place */
    CHECK(hone_fused_ffn_run(normed, NULL, &args, 16) == HONE_OK);
    hone_operator_destroy(normed);
    char text[8192];
    CHECK(hone_operator_report(op, HONE_JSON, text, sizeof text, NULL) == HONE_OK);
    CHECK(strncmp(text, "{\"parts\":[{\"part\":\"first\"", 24) == 0);
    hone_operator_destroy(op);
    size_t length = 0;
    CHECK(hone_fused_ffn_explain(runtime, &ffn, 16, HONE_JSON, NULL, 0, &length) == HONE_OK && length > 100);
    ffn.bias = 1;
    CHECK(hone_fused_ffn_prepare(runtime, &ffn, &op) == HONE_BAD_ARGUMENT);
}

static hone_attention_args usual_attention_args(void) {
    hone_attention_args args = HONE_ATTENTION_ARGS_INIT;
    args.q = address(1);
    args.k = address(2);
    args.v = address(3);
    args.out = address(4);
    args.workspace = address(5);
    return args;
}

static void check_attention(hone_runtime* runtime) {
    hone_attention attention = HONE_ATTENTION_INIT;
    attention.heads = 8;
    attention.kv_heads = 2;
    attention.head_dim = 64;
    attention.max_batch = 4;
    attention.max_q_len = 64;
    attention.max_kv_len = 300;
    attention.lengths = 1;
    hone_operator* op = NULL;
    CHECK(hone_attention_prepare(runtime, &attention, &op) == HONE_OK);
    hone_attention_args args = usual_attention_args();
    const int before = launches();
    CHECK(hone_attention_run(op, NULL, &args, 4, 1, 300) == HONE_NULL_POINTER); /* kv_lengths */
    args.kv_lengths = address(6);
    CHECK(hone_attention_run(op, NULL, &args, 4, 65, 300) == HONE_BAD_ROWS);
    CHECK(hone_attention_run(op, NULL, &args, 4, 1, 0) == HONE_BAD_ROWS);
    args.v_token_stride = 192;
    CHECK(hone_attention_run(op, NULL, &args, 4, 1, 300) == HONE_BAD_STRIDE);
    args.v_token_stride = 128;
    args.reserved = 1;
    CHECK(hone_attention_run(op, NULL, &args, 4, 1, 300) == HONE_BAD_STRUCT);
    args.reserved = 0;
    CHECK(hone_attention_run(op, NULL, &args, 0, 1, 300) == HONE_OK);
    CHECK(launches() == before);
    CHECK(hone_attention_run(op, NULL, &args, 4, 1, 300) == HONE_OK);
    CHECK(hone_attention_run(op, NULL, &args, 4, 64, 300) == HONE_OK);
    CHECK(launches() >= before + 2);
    size_t bytes = 1;
    size_t most = 0;
    CHECK(hone_attention_workspace(op, 4, 64, 300, &most) == HONE_OK);
    CHECK(hone_attention_workspace(op, 1, 1, 1, &bytes) == HONE_OK && bytes <= most);
    CHECK(hone_attention_workspace(op, 5, 64, 300, &bytes) == HONE_BAD_ARGUMENT && bytes == 0);
    CHECK(strstr(hone_last_error(), "batch is 5; allowed: 0 to 4") != NULL);
    /* Divided by a size of 0, which ended the process. */
    CHECK(hone_attention_workspace(op, 4, 64, 0, &bytes) == HONE_OK && bytes == 0);
    CHECK(hone_attention_workspace(op, 4, 0, 300, &bytes) == HONE_OK && bytes == 0);
    CHECK(hone_attention_workspace(op, 0, 64, 300, &bytes) == HONE_OK && bytes == 0);
    CHECK(hone_operator_workspace(op, 1, &bytes) == HONE_BAD_HANDLE);
    size_t length = 0;
    CHECK(hone_operator_report(op, HONE_JSON, NULL, 0, &length) == HONE_OK);
    char* text = malloc(length + 1);
    CHECK(hone_operator_report(op, HONE_JSON, text, length + 1, NULL) == HONE_OK);
    CHECK(strncmp(text, "{\"parts\":[{", 11) == 0 && strcmp(text + length - 2, "]}") == 0);
    free(text);
    hone_operator_destroy(op);
    CHECK(hone_attention_explain(runtime, &attention, 4, 1, 300, HONE_JSON, NULL, 0, &length) == HONE_OK);
    CHECK(hone_attention_explain(runtime, &attention, 4, 65, 300, HONE_JSON, NULL, 0, &length) ==
          HONE_BAD_ARGUMENT);
    attention.kv_heads = 3;
    CHECK(hone_attention_prepare(runtime, &attention, &op) == HONE_BAD_ARGUMENT);
    CHECK(strstr(hone_last_error(), "kv_heads=3") != NULL);
    attention.kv_heads = 2;
    attention.kv_dtype = 2;
    CHECK(hone_attention_prepare(runtime, &attention, &op) == HONE_BAD_ARGUMENT);
    CHECK(strstr(hone_last_error(), "kv_dtype is 2; allowed: ") != NULL);
}

static void check_paged_attention(hone_runtime* runtime) {
    hone_attention attention = HONE_ATTENTION_INIT;
    attention.heads = 8;
    attention.kv_heads = 2;
    attention.head_dim = 64;
    attention.page_size = 16;
    hone_operator* op = NULL;
    attention.kv_dtype = HONE_KV_FP8;
    attention.max_q_len = 64;
    CHECK(hone_attention_prepare(runtime, &attention, &op) == HONE_OK); /* prompts read codes, too */
    hone_operator_destroy(op);
    attention.kv_dtype = HONE_KV_SAME;
    attention.max_q_len = 1;
    attention.softcap = 1;
    CHECK(hone_attention_prepare(runtime, &attention, &op) == HONE_OK);
    hone_attention_args args = usual_attention_args();
    args.page_table = address(6);
    CHECK(hone_attention_run(op, NULL, &args, 4, 1, 300) == HONE_BAD_SCALE); /* softcap */
    args.softcap = 30;
    CHECK(hone_attention_run(op, NULL, &args, 4, 1, 300) == HONE_BAD_PAGES); /* pool_pages */
    args.pool_pages = 100;
    CHECK(hone_attention_run(op, NULL, &args, 4, 1, 300) == HONE_OK);
    hone_operator_destroy(op);
}

static void check_rope(hone_runtime* runtime) {
    hone_rope_kv_append rope = HONE_ROPE_KV_APPEND_INIT;
    rope.heads = 8;
    rope.kv_heads = 2;
    rope.head_dim = 64;
    rope.max_tokens = 64;
    hone_operator* op = NULL;
    CHECK(hone_rope_kv_append_prepare(runtime, &rope, &op) == HONE_OK);
    hone_rope_kv_append_args args = HONE_ROPE_KV_APPEND_ARGS_INIT;
    args.q = address(1);
    args.k = address(2);
    args.v = address(3);
    args.out = address(1); /* in place */
    args.k_cache = address(4);
    args.v_cache = address(5);
    args.cos = address(6);
    args.sin = address(7);
    args.kv_lengths = address(8);
    args.kv_len = 300;
    args.table_rows = 300;
    const int before = launches();
    CHECK(hone_rope_kv_append_run(op, NULL, &args, 65) == HONE_BAD_ROWS);
    args.q_len = 3;
    CHECK(hone_rope_kv_append_run(op, NULL, &args, 64) == HONE_BAD_ROWS);
    args.q_len = 1;
    CHECK(launches() == before);
    CHECK(hone_rope_kv_append_run(op, NULL, &args, 64) == HONE_OK);
    CHECK(launches() == before + 1);
    hone_attention_args other = usual_attention_args();
    CHECK(hone_attention_run(op, NULL, &other, 1, 1, 1) == HONE_BAD_HANDLE);
    size_t bytes = 1;
    CHECK(hone_operator_workspace(op, 64, &bytes) == HONE_OK && bytes == 0);
    CHECK(hone_attention_workspace(op, 1, 1, 1, &bytes) == HONE_BAD_HANDLE);
    hone_operator_destroy(op);
    size_t length = 0;
    CHECK(hone_rope_kv_append_explain(runtime, &rope, 16, HONE_TEXT, NULL, 0, &length) == HONE_OK);
    CHECK(length > 50);
    rope.style = 2;
    CHECK(hone_rope_kv_append_prepare(runtime, &rope, &op) == HONE_BAD_ARGUMENT);
    CHECK(strstr(hone_last_error(), "style is 2; allowed: ") != NULL);
}

static void check_checked_indices(void) {
    hone_runtime* runtime = NULL;
    hone_runtime_options options = HONE_RUNTIME_OPTIONS_INIT;
    options.flags = HONE_NO_CACHE | HONE_CHECK_INDICES;
    CHECK(hone_runtime_create(&options, &runtime) == HONE_OK);
    hone_attention attention = HONE_ATTENTION_INIT;
    attention.heads = 8;
    attention.head_dim = 64;
    attention.max_q_len = 1;
    attention.lengths = 1;
    hone_operator* op = NULL;
    CHECK(hone_attention_prepare(runtime, &attention, &op) == HONE_OK);
    hone_attention_args args = usual_attention_args();
    args.kv_lengths = address(6); /* no memory of the fake device */
    CHECK(hone_attention_run(op, NULL, &args, 1, 1, 300) == HONE_LAUNCH_FAILED);
    hone_operator_destroy(op);
    hone_runtime_destroy(runtime);
}

static void check_norms(hone_runtime* runtime) {
    hone_operator* op = prepared_norm(runtime);
    hone_norm_args args = usual_args();
    const int before = launches();
    CHECK(hone_norm_run(op, NULL, &args, 16) == HONE_OK);
    CHECK(hone_norm_run(op, NULL, &args, 0) == HONE_OK);
    CHECK(launches() == before + 1);
    CHECK(hone_norm_run(op, NULL, &args, 65) == HONE_BAD_ROWS);
    CHECK(hone_norm_run(op, NULL, &args, -1) == HONE_BAD_ROWS);
    CHECK(strcmp(hone_last_error(), "rows is -1; allowed: 0 to 64, as prepared") == 0);
    args.x = (char*)address(1) + 2;
    CHECK(hone_norm_run(op, NULL, &args, 16) == HONE_MISALIGNED);
    CHECK(strstr(hone_last_error(), "16 bytes") != NULL);
    args = usual_args();
    args.x_stride = 4088;
    CHECK(hone_norm_run(op, NULL, &args, 16) == HONE_BAD_STRIDE);
    args = usual_args();
    args.weight = NULL;
    CHECK(hone_norm_run(op, NULL, &args, 16) == HONE_NULL_POINTER);
    CHECK(launches() == before + 1);
    hone_operator_destroy(op);

    hone_layer_norm layer = HONE_LAYER_NORM_INIT;
    layer.hidden = 768;
    layer.dtype = HONE_FP32;
    CHECK(hone_layer_norm_prepare(runtime, &layer, &op) == HONE_OK);
    args = usual_args();
    CHECK(hone_norm_run(op, NULL, &args, 8192) == HONE_NULL_POINTER);
    args.bias = address(4);
    CHECK(hone_norm_run(op, NULL, &args, 8192) == HONE_OK);
    hone_operator_destroy(op);
}

static void check_both_ends_of_a_model(hone_runtime* runtime) {
    hone_embedding embedding = HONE_EMBEDDING_INIT;
    embedding.hidden = 768;
    embedding.max_tokens = 64;
    hone_operator* op = NULL;
    CHECK(hone_embedding_prepare(runtime, &embedding, &op) == HONE_OK);
    hone_embedding_args tokens = HONE_EMBEDDING_ARGS_INIT;
    tokens.ids = address(1);
    tokens.table = address(2);
    tokens.vocabulary = 32000;
    CHECK(hone_embedding_run(op, NULL, &tokens, 16) == HONE_NULL_POINTER);
    CHECK(strstr(hone_last_error(), "out") != NULL);
    tokens.out = address(3);
    CHECK(hone_embedding_run(op, NULL, &tokens, 16) == HONE_OK);
    CHECK(hone_embedding_run(op, NULL, &tokens, 65) == HONE_BAD_ROWS);
    hone_sample_args draw = HONE_SAMPLE_ARGS_INIT;
    CHECK(hone_sample_run(op, NULL, &draw, 4) == HONE_BAD_HANDLE);
    hone_operator_destroy(op);

    hone_sample sample = HONE_SAMPLE_INIT;
    sample.vocabulary = 32000;
    CHECK(hone_sample_prepare(runtime, &sample, &op) == HONE_OK);
    draw.logits = address(1);
    draw.temperature = address(2);
    draw.seed = address(3);
    draw.counter = address(4);
    CHECK(hone_sample_run(op, NULL, &draw, 4) == HONE_NULL_POINTER);
    draw.out = address(5);
    CHECK(hone_sample_run(op, NULL, &draw, 4) == HONE_OK);
    hone_operator_destroy(op);

    char text[4096];
    hone_layer_norm norm = HONE_LAYER_NORM_INIT;
    norm.hidden = 768;
    CHECK(hone_embedding_explain(runtime, &embedding, 16, HONE_TEXT, text, sizeof text, NULL) == HONE_OK);
    CHECK(strncmp(text, "embedding ", 10) == 0);
    CHECK(hone_sample_explain(runtime, &sample, 4, HONE_TEXT, text, sizeof text, NULL) == HONE_OK);
    CHECK(strncmp(text, "sample ", 7) == 0);
    CHECK(hone_layer_norm_explain(runtime, &norm, 4, HONE_TEXT, text, sizeof text, NULL) == HONE_OK);
    CHECK(strncmp(text, "layernorm ", 10) == 0);
}

static void check_bad_arguments(hone_runtime* runtime) {
    hone_operator* op = address(1);
    hone_rms_norm norm = HONE_RMS_NORM_INIT;
    CHECK(hone_rms_norm_prepare(runtime, &norm, &op) == HONE_BAD_ARGUMENT);
    CHECK(op == NULL);
    CHECK(strstr(hone_last_error(), "hidden") != NULL);
    norm.hidden = 4096;
    norm.dtype = 7;
    CHECK(hone_rms_norm_prepare(runtime, &norm, &op) == HONE_BAD_ARGUMENT);
    CHECK(strstr(hone_last_error(), "dtype is 7") != NULL);
    norm.dtype = HONE_BF16;
    norm.residual = 2;
    CHECK(hone_rms_norm_prepare(runtime, &norm, &op) == HONE_BAD_ARGUMENT);
    CHECK(strstr(hone_last_error(), "residual is 2") != NULL);
    CHECK(hone_rms_norm_prepare(runtime, NULL, &op) == HONE_NULL_POINTER);
    CHECK(strcmp(hone_last_error(), "description is NULL") == 0);
    CHECK(hone_rms_norm_prepare(NULL, &norm, &op) == HONE_BAD_HANDLE);
    CHECK(hone_runtime_create(NULL, NULL) == HONE_NULL_POINTER);
    CHECK(strcmp(hone_last_error(), "runtime is NULL") == 0);
    CHECK(hone_norm_run(NULL, NULL, NULL, 1) == HONE_BAD_HANDLE);
    hone_runtime_options options = HONE_RUNTIME_OPTIONS_INIT;
    hone_runtime* none = NULL;
    options.device = 99;
    CHECK(hone_runtime_create(&options, &none) == HONE_NO_GPU);
    options.device = 0;
    options.flags = 64;
    CHECK(hone_runtime_create(&options, &none) == HONE_BAD_ARGUMENT);
    CHECK(none == NULL);
    CHECK(strcmp(hone_status_string((hone_status)999), "unknown status") == 0);
}

/* A program that was compiled with a later header hands over a longer struct. */
static void check_struct_sizes(hone_runtime* runtime) {
    hone_operator* op = prepared_norm(runtime);
    struct {
        hone_norm_args known;
        uint64_t later;
    } args = {usual_args(), 0};
    args.known.struct_size = sizeof args;
    CHECK(hone_norm_run(op, NULL, &args.known, 4) == HONE_OK);
    args.later = 1;
    CHECK(hone_norm_run(op, NULL, &args.known, 4) == HONE_BAD_STRUCT);
    args.known.struct_size = 8;
    CHECK(hone_norm_run(op, NULL, &args.known, 4) == HONE_BAD_STRUCT);
    args.known.struct_size = 0;
    CHECK(hone_norm_run(op, NULL, &args.known, 4) == HONE_BAD_STRUCT);
    args.known.struct_size = 0xffffffffu;
    CHECK(hone_norm_run(op, NULL, &args.known, 4) == HONE_BAD_STRUCT);

    size_t length = 0;
    CHECK(hone_operator_report(op, (hone_text_format)7, NULL, 0, &length) == HONE_BAD_ARGUMENT);
    CHECK(strstr(hone_last_error(), "format is 7; allowed: HONE_TEXT (0), HONE_JSON (1)") != NULL);
    CHECK(hone_operator_report(op, HONE_TEXT, NULL, 1, &length) == HONE_NULL_POINTER);
    CHECK(strcmp(hone_last_error(), "text is NULL, and capacity is not 0") == 0);

    hone_operator* unset = op; /* an operator that could not be prepared is none, whatever was wrong */
    hone_rms_norm norm = HONE_RMS_NORM_INIT;
    norm.struct_size = 1;
    CHECK(hone_rms_norm_prepare(runtime, &norm, &unset) == HONE_BAD_STRUCT && unset == NULL);
    unset = op;
    CHECK(hone_rms_norm_prepare(runtime, NULL, &unset) == HONE_NULL_POINTER && unset == NULL);
    hone_operator_destroy(op);
}

/* A program that was compiled before a struct grew hands over a shorter one. */
static void check_older_options(void) {
    struct {
        hone_runtime_options known;
        uint64_t beyond;
    } options = {HONE_RUNTIME_OPTIONS_INIT, 0};
    hone_runtime* runtime = NULL;
    options.known.struct_size = offsetof(hone_runtime_options, capture_file);
    options.known.flags = HONE_NO_CACHE;
    memset(&options.known.capture_file, 0xff, sizeof options.known.capture_file); /* not theirs to look at */
    CHECK(hone_runtime_create(&options.known, &runtime) == HONE_OK);
    hone_runtime_destroy(runtime);
    options.known.struct_size -= 1;
    CHECK(hone_runtime_create(&options.known, &runtime) == HONE_BAD_STRUCT);
}

static void check_capture(void) {
    char file[] = "/tmp/hone-capture-XXXXXX";
    const int made = mkstemp(file);
    CHECK(made >= 0 && close(made) == 0);
    hone_runtime* runtime = NULL;
    hone_runtime_options options = HONE_RUNTIME_OPTIONS_INIT;
    options.flags = HONE_NO_CACHE;
    options.capture_file = file;
    CHECK(hone_runtime_create(&options, &runtime) == HONE_OK);
    hone_operator* op = prepared_norm(runtime);
    hone_norm_args args = usual_args();
    CHECK(hone_norm_run(op, NULL, &args, 1) == HONE_OK);
    hone_operator_destroy(op);
    hone_runtime_destroy(runtime);
    char text[512] = "";
    FILE* stream = fopen(file, "r");
    CHECK(stream != NULL && fread(text, 1, sizeof text - 1, stream) > 0 && fclose(stream) == 0);
    CHECK(strstr(text, "\"calls\":1,") != NULL);
    CHECK(remove(file) == 0);
}

/* What bindings start from, who have no macros. */
static void check_initializers(void) {
    CHECK(differing_initializer() == NULL);
    hone_runtime_options options = {.device = 7};
    CHECK(hone_runtime_options_init(&options, sizeof options) == HONE_OK);
    CHECK(options.struct_size == sizeof options && options.device == 0);
    hone_counters counters;
    CHECK(hone_counters_init(&counters, sizeof counters) == HONE_OK && counters.prepares == 0);
    struct {
        hone_linear known;
        uint64_t later;
    } linear = {.later = 1};
    CHECK(hone_linear_init(&linear.known, sizeof linear) == HONE_OK);
    CHECK(linear.known.struct_size == sizeof linear && linear.later == 0);
    CHECK(hone_linear_init(&linear.known, 8) == HONE_BAD_STRUCT);
    CHECK(hone_linear_init(&linear.known, 1u << 20) == HONE_BAD_STRUCT);
    CHECK(linear.known.struct_size == sizeof linear); /* a size that is none writes nothing */
    CHECK(hone_linear_init(NULL, sizeof(hone_linear)) == HONE_NULL_POINTER);
}

static void check_texts(hone_runtime* runtime) {
    hone_operator* op = prepared_norm(runtime);
    size_t length = 0;
    CHECK(hone_operator_report(op, HONE_JSON, NULL, 0, &length) == HONE_OK);
    char* text = malloc(length + 1);
    CHECK(hone_operator_report(op, HONE_JSON, text, length + 1, NULL) == HONE_OK);
    CHECK(strlen(text) == length && text[0] == '{' && strstr(text, "\"buckets\"") != NULL);
    CHECK(hone_operator_report(op, HONE_JSON, text, 5, NULL) == HONE_OK && strlen(text) == 4);
    free(text);
    hone_operator_destroy(op);

    char explained[4096];
    hone_rms_norm norm = HONE_RMS_NORM_INIT;
    norm.hidden = 4096;
    CHECK(hone_rms_norm_explain(runtime, &norm, 16, HONE_TEXT, explained, sizeof explained, &length) ==
          HONE_OK);
    CHECK(strstr(explained, "because:") != NULL && length < sizeof explained);
    CHECK(hone_runtime_device_name(runtime) != NULL);
}

static void check_schema_and_version(void) {
    CHECK(hone_schema("linear") != NULL && hone_schema("linear")[0] == '{');
    CHECK(strstr(hone_schema("sample"), "log_probability") != NULL);
    CHECK(hone_schema("no operator") == NULL && hone_schema(NULL) == NULL);
    CHECK(strchr(hone_version(), '.') != NULL);
}

static void note_warning(void* user, const char* text) {
    char* note = user;
    CHECK(note[0] == 0);
    strncpy(note, text, 255);
}

/* A cache that cannot be is one warning, which goes where the caller wants it, and dispatch goes on. */
static void check_warning(void) {
    char note[256] = "";
    hone_runtime* runtime = NULL;
    hone_runtime_options options = HONE_RUNTIME_OPTIONS_INIT;
    options.cache_file = "/dev/null/cache.db";
    options.on_warning = note_warning;
    options.user = note;
    CHECK(hone_runtime_create(&options, &runtime) == HONE_OK);
    CHECK(strstr(note, "/dev/null") != NULL);
    hone_operator_destroy(prepared_norm(runtime));
    hone_runtime_destroy(runtime);
}

static void check_counters_and_freeze(hone_runtime* runtime) {
    hone_counters counters = HONE_COUNTERS_INIT;
    CHECK(hone_runtime_counters(runtime, &counters) == HONE_OK);
    CHECK(counters.prepares > 0 && counters.runs_fallback > 0);
    CHECK(hone_runtime_freeze(runtime) == HONE_OK);
    hone_rms_norm norm = HONE_RMS_NORM_INIT;
    norm.hidden = 1024;
    hone_operator* op = NULL;
    CHECK(hone_rms_norm_prepare(runtime, &norm, &op) == HONE_FROZEN);
}

static void check_fork(hone_runtime* runtime) {
    hone_operator* op = prepared_norm(runtime);
    const pid_t child = fork();
    if (child == 0) {
        hone_norm_args args = usual_args();
        hone_counters counters = HONE_COUNTERS_INIT;
        const int right = hone_norm_run(op, NULL, &args, 16) == HONE_FORKED &&
                          hone_runtime_counters(runtime, &counters) == HONE_FORKED;
        hone_operator_destroy(op);
        hone_runtime_destroy(runtime);
        _exit(right ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    hone_norm_args args = usual_args();
    CHECK(hone_norm_run(op, NULL, &args, 16) == HONE_OK);
    hone_operator_destroy(op);
}

struct Work {
    hone_operator* op;
    int wrong;
};

static void* run_often(void* data) {
    struct Work* work = data;
    for (int i = 0; i < 20000; ++i) {
        hone_norm_args args = usual_args();
        args.x = i % 2 == 0 ? args.x : NULL;
        work->wrong +=
            hone_norm_run(work->op, NULL, &args, i % 64 + 1) != (i % 2 == 0 ? HONE_OK : HONE_NULL_POINTER);
    }
    work->wrong += strstr(hone_last_error(), "null pointer") == NULL;
    return NULL;
}

static void check_threads(hone_runtime* runtime) {
    struct Work work[4];
    pthread_t threads[4];
    hone_operator* op = prepared_norm(runtime);
    for (int i = 0; i < 4; ++i) {
        work[i] = (struct Work){op, 0};
        CHECK(pthread_create(&threads[i], NULL, run_often, &work[i]) == 0);
    }
    for (int i = 0; i < 4; ++i) {
        pthread_join(threads[i], NULL);
        CHECK(work[i].wrong == 0);
    }
    hone_operator_destroy(op);
}

/* An operator keeps what it needs when its runtime goes. */
static void check_order_of_ends(void) {
    hone_runtime* runtime = NULL;
    hone_runtime_options options = HONE_RUNTIME_OPTIONS_INIT;
    options.flags = HONE_NO_CACHE;
    CHECK(hone_runtime_create(&options, &runtime) == HONE_OK);
    hone_operator* op = prepared_norm(runtime);
    hone_runtime_destroy(runtime);
    hone_norm_args args = usual_args();
    CHECK(hone_norm_run(op, NULL, &args, 1) == HONE_OK);
    hone_operator_destroy(op);
    hone_operator_destroy(NULL);
    hone_runtime_destroy(NULL);
}

int main(void) {
    hone_runtime* runtime = NULL;
    hone_runtime_options options = HONE_RUNTIME_OPTIONS_INIT;
    options.flags = HONE_NO_CACHE;
    CHECK(strcmp(hone_last_error(), "") == 0);
    if (hone_runtime_create(&options, &runtime) != HONE_OK) {
        fprintf(stderr, "no runtime: %s\n", hone_last_error());
        return 1;
    }
    check_norms(runtime);
    check_backward(runtime);
    check_linear(runtime);
    check_quantized_linear(runtime);
    check_quantize_weights(runtime);
    check_quantize_on_host();
    check_one_scale(runtime);
    check_quantized_ffn(runtime);
    check_ffn(runtime);
    check_attention(runtime);
    check_paged_attention(runtime);
    check_rope(runtime);
    check_checked_indices();
    check_both_ends_of_a_model(runtime);
    check_bad_arguments(runtime);
    check_struct_sizes(runtime);
    check_initializers();
    check_older_options();
    check_capture();
    check_texts(runtime);
    check_schema_and_version();
    check_warning();
    check_fork(runtime);
    check_threads(runtime);
    check_counters_and_freeze(runtime);
    hone_runtime_destroy(runtime);
    check_order_of_ends();
    return failures == 0 ? 0 : 1;
}
