/* Hone's C interface: the tuned operators for engines in C, Rust, Go, Python and whatever else calls C.
 *
 *   hone_runtime* runtime;
 *   hone_operator* norm;
 *   if (hone_runtime_create(NULL, &runtime) != HONE_OK) puts(hone_last_error());
 *   hone_rms_norm description = HONE_RMS_NORM_INIT;
 *   description.hidden = 4096;
 *   hone_rms_norm_prepare(runtime, &description, &norm);
 *   hone_norm_args args = HONE_NORM_ARGS_INIT;
 *   args.x = x; args.weight = weight; args.out = out;
 *   hone_norm_run(norm, stream, &args, rows);
 *
 * Every function may be called from any thread; a handle may be used by many at once, and must not be used
 * while or after it is destroyed. hone_*_run() is safe under stream capture, takes no lock, allocates nothing
 * and makes no system call of its own, but for hone_quantize_weights_run(). No exception leaves the library.
 * A child of fork() must make its own handles: those it inherited answer HONE_FORKED, and destroying them
 * frees nothing.
 *
 * Structs begin with their size and grow only at the end: start from the _INIT macro of the header you
 * compile with, and every later library reads it. Pointers are to device memory unless said otherwise;
 * `stream` is a CUstream or cudaStream_t, NULL the default stream. The calling thread needs the device's
 * primary context current, as after any call of the CUDA runtime; a thread without a context gets it at its
 * first run.
 */
#ifndef HONE_H
#define HONE_H

#include <stddef.h>
#include <stdint.h>

#define HONE_VERSION_MAJOR 0
#define HONE_VERSION_MINOR 1
#define HONE_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define HONE_API
#else
#define HONE_API __attribute__((visibility("default")))
#endif

/* Numbers never change their meaning. */
typedef enum hone_status {
    HONE_OK = 0,
    /* Of runs; all but HONE_LAUNCH_FAILED before anything is enqueued. */
    HONE_BAD_ROWS = 1,      /* rows, or a size of the call, is negative or above the prepared maximum */
    HONE_NULL_POINTER = 2,  /* a tensor that this operator needs is NULL */
    HONE_MISALIGNED = 3,    /* a pointer or row stride is not a multiple of the kernel's access width */
    HONE_BAD_STRIDE = 4,    /* a row stride is smaller than a row, or not one that goes with the others */
    HONE_BAD_HANDLE = 5,    /* a handle is NULL, or of another operator than the function's */
    HONE_BAD_STRUCT = 6,    /* struct_size is no size that this library knows, or a later field is set */
    HONE_FORKED = 7,        /* the handle was made before fork() */
    HONE_LAUNCH_FAILED = 8, /* the driver refused */
    HONE_BAD_EPSILON = 9,   /* epsilon is negative, infinite or no number */
    HONE_BAD_SCALE = 10,    /* scale is infinite or no number, or softcap is not above 0 */
    HONE_BAD_LENGTHS = 11,  /* HONE_CHECK_INDICES: a length or position past its room, or decreasing starts */
    HONE_BAD_PAGES = 12,    /* a paged cache without pages; HONE_CHECK_INDICES: a page or slot outside */
    HONE_CAPTURING = 13,    /* HONE_CHECK_INDICES, quantizing: not possible under stream capture */
    /* Of everything else. */
    HONE_BAD_ARGUMENT = 20,   /* a size, dtype or option that the operator does not take */
    HONE_NO_GPU = 21,         /* no driver, too old a driver, no such device */
    HONE_COMPILE_FAILED = 22, /* NVRTC is missing or refused the kernel */
    HONE_FROZEN = 23,         /* a compile was needed that is not allowed */
    HONE_OUT_OF_MEMORY = 24,  /* of the host */
    HONE_FAILED = 25          /* anything else: a dead device, device memory, ... */
} hone_status;

typedef enum hone_dtype { HONE_FP32 = 0, HONE_FP16 = 1, HONE_BF16 = 2 } hone_dtype;

/* What a norm writes to `out`. Quantized rows are symmetric with one scale each: out * scale approximates y,
 * and scale = max|y| / 127 (int8) or max|y| / 448 (fp8). */
typedef enum hone_norm_output {
    HONE_OUTPUT_SAME = 0, /* the operator's dtype */
    HONE_OUTPUT_INT8 = 1,
    HONE_OUTPUT_FP8 = 2 /* E4M3 */
} hone_norm_output;

typedef enum hone_text_format {
    HONE_TEXT = 0, /* for people: lines that end in a newline */
    HONE_JSON = 1  /* one object; docs/json-output.md lists its members */
} hone_text_format;

typedef struct hone_runtime hone_runtime;   /* driver, compiler and tuning results of one GPU */
typedef struct hone_operator hone_operator; /* a prepared operator; outlives its runtime */

/* "0.1.0" */
HONE_API const char* hone_version(void);

/* One sentence; "unknown status" for a number that is none. */
HONE_API const char* hone_status_string(hone_status status);

/* What the last call of this thread that did not return HONE_OK had to say: what is wrong, what is allowed,
 * and what to do. Valid until this thread's next such call; "" when there was none. */
HONE_API const char* hone_last_error(void);

enum {
    HONE_NO_CACHE = 1, /* no file is read or written: only the results that Hone was shipped with are known */
    HONE_NO_COMPILE = 2, /* as if hone_runtime_freeze() had been called at once */
    /* For debugging: runs of attention and of its append copy lengths, starts, pages, positions and slots to
     * the host first, which waits for the stream, and refuse what is out of range. HONE_CHECK_INDICES=1 in
     * the environment does the same. */
    HONE_CHECK_INDICES = 4
};

typedef struct hone_runtime_options {
    uint32_t struct_size;
    uint32_t flags;         /* HONE_NO_CACHE, HONE_NO_COMPILE, HONE_CHECK_INDICES */
    int32_t device;         /* as the CUDA driver counts, that is, after CUDA_VISIBLE_DEVICES */
    uint32_t reserved;      /* 0 */
    const char* cache_file; /* tuning results and images; NULL: HONE_CACHE, else the user's cache folder */
    /* Gets one sentence when something only degrades. It must not call Hone. NULL: a line on stderr. */
    void (*on_warning)(void* user, const char* text);
    void* user; /* handed to on_warning */
} hone_runtime_options;
#define HONE_RUNTIME_OPTIONS_INIT \
    { sizeof(hone_runtime_options), 0, 0, 0, NULL, NULL, NULL }

/* Loads the driver, retains the device's primary context, and reads the tuning results once: later tuning is
 * seen by the next runtime. `options` may be NULL. A cache that cannot be read only warns. */
HONE_API hone_status hone_runtime_create(const hone_runtime_options* options, hone_runtime** runtime);
/* NULL is allowed. Prepared operators stay usable. */
HONE_API void hone_runtime_destroy(hone_runtime* runtime);
/* From now on a prepare that would have to compile returns HONE_FROZEN instead. */
HONE_API hone_status hone_runtime_freeze(hone_runtime* runtime);
/* "NVIDIA H100 80GB HBM3"; lives as long as the runtime. NULL for a bad handle. */
HONE_API const char* hone_runtime_device_name(const hone_runtime* runtime);

/* Since the runtime was created. */
typedef struct hone_counters {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t runs_exact; /* successful runs, by where the knowledge of their kernel came from */
    uint64_t runs_neighbour;
    uint64_t runs_foreign;
    uint64_t runs_fallback;
    uint64_t failed_launches;
    uint64_t prepares;
    uint64_t compiles;
    uint64_t image_cache_hits;
} hone_counters;
#define HONE_COUNTERS_INIT \
    { sizeof(hone_counters), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

HONE_API hone_status hone_runtime_counters(const hone_runtime* runtime, hone_counters* counters);

/* NULL is allowed. No run of it may be under way; what it has enqueued may. */
HONE_API void hone_operator_destroy(hone_operator* op);
/* What its prepare chose, bucket by bucket; of a feed-forward network for both halves, in JSON as "first" and
 * "second", of attention for all its kernels, in JSON as "parts". Writes at most `capacity` bytes with the
 * final 0 into host memory `text` (NULL when capacity is 0); `length` gets the whole text's bytes without it.
 */
HONE_API hone_status hone_operator_report(const hone_operator* op, hone_text_format format, char* text,
                                          size_t capacity, size_t* length);

/* Bytes of device memory, aligned to 256, that a call of up to `rows` rows needs as its workspace; 0: none.
 */
HONE_API hone_status hone_operator_workspace(const hone_operator* op, int64_t rows, size_t* bytes);

/* y = x * rsqrt(mean(x^2) + epsilon) * weight over each row of `hidden` elements, accumulated in fp32. With a
 * residual, x + residual (rounded to dtype) takes the place of x and is written to `sum`. */
typedef struct hone_rms_norm {
    uint32_t struct_size;
    int32_t dtype;    /* hone_dtype: of x, residual, weight and sum */
    int64_t hidden;   /* elements of a row, 1 to 262144 */
    int64_t max_rows; /* most rows of one call */
    int32_t output;   /* hone_norm_output */
    int32_t residual; /* 0 or 1 */
} hone_rms_norm;
#define HONE_RMS_NORM_INIT \
    { sizeof(hone_rms_norm), HONE_BF16, 0, 8192, HONE_OUTPUT_SAME, 0 }

/* y = (x - mean(x)) * rsqrt(var(x) + epsilon) * weight + bias; otherwise like hone_rms_norm. */
typedef struct hone_layer_norm {
    uint32_t struct_size;
    int32_t dtype;
    int64_t hidden;
    int64_t max_rows;
    int32_t output;
    int32_t residual;
    int32_t bias;      /* 0 or 1 */
    uint32_t reserved; /* 0 */
} hone_layer_norm;
#define HONE_LAYER_NORM_INIT \
    { sizeof(hone_layer_norm), HONE_BF16, 0, 8192, HONE_OUTPUT_SAME, 0, 1, 0 }

/* One call of either norm. Rows are contiguous; a stride is the distance between two rows in elements, 0
 * meaning `hidden`. 16 bytes always suffice as alignment of pointers and strides. `out` may be x itself when
 * it has the same dtype, `sum` may be x or residual itself; other overlaps are not allowed. */
typedef struct hone_norm_args {
    uint32_t struct_size;
    float epsilon;
    const void* x;        /* [rows, hidden], dtype */
    const void* residual; /* [rows, hidden], dtype; for operators with a residual */
    const void* weight;   /* [hidden], dtype */
    const void* bias;     /* [hidden], dtype; for a layer norm with a bias */
    void* out;            /* [rows, hidden], dtype or codes of one byte */
    void* sum;            /* [rows, hidden], dtype; for operators with a residual */
    float* scale;         /* [rows]; for quantized outputs */
    int64_t x_stride;
    int64_t residual_stride;
    int64_t out_stride;
    int64_t sum_stride;
} hone_norm_args;
#define HONE_NORM_ARGS_INIT \
    { sizeof(hone_norm_args), 1e-5f, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0 }

/* Loads, or compiles, every kernel that a call of up to max_rows rows can reach. */
HONE_API hone_status hone_rms_norm_prepare(hone_runtime* runtime, const hone_rms_norm* norm,
                                           hone_operator** op);
HONE_API hone_status hone_layer_norm_prepare(hone_runtime* runtime, const hone_layer_norm* norm,
                                             hone_operator** op);
/* Enqueues a prepared norm for `rows` rows (0: does nothing). */
HONE_API hone_status hone_norm_run(const hone_operator* op, void* stream, const hone_norm_args* args,
                                   int64_t rows);

/* Which kernel a call of `rows` rows takes, and why. Loads nothing. The text is as for
 * hone_operator_report(). */
HONE_API hone_status hone_rms_norm_explain(const hone_runtime* runtime, const hone_rms_norm* norm,
                                           int64_t rows, hone_text_format format, char* text, size_t capacity,
                                           size_t* length);
HONE_API hone_status hone_layer_norm_explain(const hone_runtime* runtime, const hone_layer_norm* norm,
                                             int64_t rows, hone_text_format format, char* text,
                                             size_t capacity, size_t* length);

/* Gradients of an RMSNorm: with r = rsqrt(mean(x^2) + epsilon) of a row and g = dy * weight,
 *   dx = r * (g - x * r^2 * mean(g * x)) (+ dsum),     dweight = sum over rows of dy * x * r,
 * accumulated in fp32, the same at every call. x is what was normalized: for a norm with a residual its
 * `sum`, whose own gradient dsum then joins dx, which is the gradient of both x and residual. */
typedef struct hone_rms_norm_backward {
    uint32_t struct_size;
    int32_t dtype; /* hone_dtype: of every tensor */
    int64_t hidden;
    int64_t max_rows;
    int32_t residual;  /* 1: dsum is added */
    uint32_t reserved; /* 0 */
} hone_rms_norm_backward;
#define HONE_RMS_NORM_BACKWARD_INIT \
    { sizeof(hone_rms_norm_backward), HONE_BF16, 0, 8192, 0, 0 }

/* Rows are contiguous, strides as in hone_norm_args. dx may be dy or dsum itself; other overlaps are not
 * allowed. */
typedef struct hone_rms_norm_backward_args {
    uint32_t struct_size;
    float epsilon;
    const void* dy;     /* [rows, hidden], dtype */
    const void* x;      /* [rows, hidden], dtype */
    const void* weight; /* [hidden], dtype */
    const void* dsum;   /* [rows, hidden], dtype; for operators with a residual */
    void* dx;           /* [rows, hidden], dtype */
    void* dweight;      /* [hidden], dtype */
    void* workspace;    /* hone_operator_workspace() bytes; no other call may use it meanwhile */
    int64_t dy_stride;
    int64_t x_stride;
    int64_t dsum_stride;
    int64_t dx_stride;
} hone_rms_norm_backward_args;
#define HONE_RMS_NORM_BACKWARD_ARGS_INIT \
    { sizeof(hone_rms_norm_backward_args), 1e-5f, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0 }

HONE_API hone_status hone_rms_norm_backward_prepare(hone_runtime* runtime, const hone_rms_norm_backward* norm,
                                                    hone_operator** op);
HONE_API hone_status hone_rms_norm_backward_run(const hone_operator* op, void* stream,
                                                const hone_rms_norm_backward_args* args, int64_t rows);
HONE_API hone_status hone_rms_norm_backward_explain(const hone_runtime* runtime,
                                                    const hone_rms_norm_backward* norm, int64_t rows,
                                                    hone_text_format format, char* text, size_t capacity,
                                                    size_t* length);

typedef enum hone_activation {
    HONE_ACTIVATION_NONE = 0,
    HONE_GELU_TANH = 1, /* 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
    HONE_GELU_ERF = 2,  /* 0.5 x (1 + erf(x / sqrt(2))) */
    HONE_SILU = 3,      /* x / (1 + exp(-x)) */
    HONE_RELU = 4
} hone_activation;

/* out = activation(x * weight^T + bias) + residual, accumulated in fp32. With a norm
 * x * rsqrt(mean(x^2) + epsilon) * norm_weight, an RMSNorm, takes the place of x; it may be rounded to dtype
 * before it is multiplied, as that of hone_norm_run() is. */
typedef struct hone_linear {
    uint32_t struct_size;
    int32_t dtype;      /* hone_dtype: of every tensor */
    int64_t in;         /* elements of a row of x, 1 to 262144 */
    int64_t out;        /* elements of a row of out, 1 to 1048576 */
    int64_t max_tokens; /* most rows of one call */
    int32_t activation; /* hone_activation */
    int32_t bias;       /* 0 or 1 */
    int32_t residual;   /* 0 or 1 */
    int32_t norm;       /* 0 or 1: x is normalized first */
} hone_linear;
#define HONE_LINEAR_INIT \
    { sizeof(hone_linear), HONE_BF16, 0, 0, 8192, HONE_ACTIVATION_NONE, 0, 0, 0 }

/* Rows are contiguous, strides as in hone_norm_args. `out` may be the residual itself; other overlaps are not
 * allowed. Weights are constants: a kernel may read them before the one enqueued right before it has ended,
 * if that lets its successor begin early, as Hone's kernels do. Such a kernel must not write them. */
typedef struct hone_linear_args {
    uint32_t struct_size;
    float epsilon;        /* of the norm, from 0 */
    const void* x;        /* [tokens, in] */
    const void* weight;   /* [out, in] */
    const void* bias;     /* [out]; for operators with a bias */
    const void* residual; /* [tokens, out]; for operators with a residual */
    void* out;            /* [tokens, out] */
    void* workspace;      /* hone_operator_workspace() bytes; NULL when that is 0 */
    int64_t x_stride;
    int64_t weight_stride;
    int64_t residual_stride;
    int64_t out_stride;
    const void* norm_weight; /* [in]; for operators with a norm */
} hone_linear_args;
#define HONE_LINEAR_ARGS_INIT \
    { sizeof(hone_linear_args), 1e-5f, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL }

HONE_API hone_status hone_linear_prepare(hone_runtime* runtime, const hone_linear* linear,
                                         hone_operator** op);
HONE_API hone_status hone_linear_run(const hone_operator* op, void* stream, const hone_linear_args* args,
                                     int64_t tokens);
HONE_API hone_status hone_linear_explain(const hone_runtime* runtime, const hone_linear* linear,
                                         int64_t tokens, hone_text_format format, char* text, size_t capacity,
                                         size_t* length);

/* The feed-forward network of a transformer layer. Gated (SwiGLU and its like):
 *   out = (activation(x * gate^T) * (x * up^T)) * down^T + residual,
 * else out = activation(x * up^T + up_bias) * down^T + down_bias + residual. The product of the first half,
 * [tokens, intermediate] in dtype, lies in the workspace. With a norm an RMSNorm of x takes the place of x,
 * as in hone_linear, but not of a residual that is x itself: out = x + ffn(norm(x)) is one call. */
typedef struct hone_fused_ffn {
    uint32_t struct_size;
    int32_t dtype;        /* hone_dtype: of every tensor */
    int64_t hidden;       /* elements of a row of x and out */
    int64_t intermediate; /* elements of a row between the halves */
    int64_t max_tokens;   /* most rows of one call */
    int32_t activation;   /* hone_activation */
    int32_t gated;        /* 0 or 1 */
    int32_t bias;         /* 0 or 1: of both halves; not with gated */
    int32_t residual;     /* 0 or 1 */
    int32_t norm;         /* 0 or 1: x is normalized first */
} hone_fused_ffn;
#define HONE_FUSED_FFN_INIT \
    { sizeof(hone_fused_ffn), HONE_BF16, 0, 0, 8192, HONE_SILU, 1, 0, 0, 0 }

/* As hone_linear_args; weights have no gaps. `out` may be the residual itself also where that is x. */
typedef struct hone_fused_ffn_args {
    uint32_t struct_size;
    float epsilon;         /* of the norm, from 0 */
    const void* x;         /* [tokens, hidden] */
    const void* gate;      /* [intermediate, hidden]; for gated operators */
    const void* up;        /* [intermediate, hidden] */
    const void* up_bias;   /* [intermediate]; for operators with biases */
    const void* down;      /* [hidden, intermediate] */
    const void* down_bias; /* [hidden]; for operators with biases */
    const void* residual;  /* [tokens, hidden]; for operators with a residual */
    void* out;             /* [tokens, hidden] */
    void* workspace;       /* hone_operator_workspace() bytes */
    int64_t x_stride;
    int64_t residual_stride;
    int64_t out_stride;
    const void* norm_weight; /* [hidden]; for operators with a norm */
} hone_fused_ffn_args;
#define HONE_FUSED_FFN_ARGS_INIT                                                                           \
    {                                                                                                      \
        sizeof(hone_fused_ffn_args), 1e-5f, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, \
            NULL                                                                                           \
    }

HONE_API hone_status hone_fused_ffn_prepare(hone_runtime* runtime, const hone_fused_ffn* ffn,
                                            hone_operator** op);
HONE_API hone_status hone_fused_ffn_run(const hone_operator* op, void* stream,
                                        const hone_fused_ffn_args* args, int64_t tokens);
/* The text tells of both halves, in JSON as "first" and "second". */
HONE_API hone_status hone_fused_ffn_explain(const hone_runtime* runtime, const hone_fused_ffn* ffn,
                                            int64_t tokens, hone_text_format format, char* text,
                                            size_t capacity, size_t* length);

/* How a weight is stored: value = (code - zero point) * scale. docs/formats.md says where each bit stands. */
typedef enum hone_quant_format {
    HONE_QUANT_W4A16 = 0, /* codes 0 to 15 in blocks of 64 x 64; zero points 0 to 15, or 8 for all */
    HONE_QUANT_W8A16 = 1, /* codes -127 to 127 in blocks of 64 x 64 */
    HONE_QUANT_W8A8 = 2,  /* codes -127 to 127, [out, in]; x is multiplied as such codes, too */
    HONE_QUANT_FP8 = 3    /* codes are E4M3 numbers, [out, in]; x is multiplied as such codes, too */
} hone_quant_format;

/* hone_linear with a weight of 4 or 8 bits. w4a16 and w8a16 multiply x as it is; weights may be rounded to
 * dtype before that. w8a8 and fp8 multiply codes with codes: either the caller gives those of x
 * (quantized_x), as hone_norm_run() writes them, or they are made of x first, with a scale for each token
 * (fp8 with a group: for each 128 columns of it), the largest magnitude at 127 or 448. */
typedef struct hone_quantized_linear {
    uint32_t struct_size;
    int32_t dtype; /* hone_dtype: fp16 or bf16, of x that is no codes, bias, residual, norm_weight, out */
    int64_t in;    /* elements of a row of x, 1 to 262144 */
    int64_t out;   /* elements of a row of out, 1 to 1048576 */
    int64_t max_tokens;  /* most rows of one call */
    int64_t group;       /* columns of the weight that share a scale, 0: all. w4a16: 32, 64, 128, dividing in;
                            fp8: 128, dividing in, for a scale each 128 x 128 of the weight and each 128
                            columns of x; others: 0 */
    int32_t format;      /* hone_quant_format */
    int32_t zeros;       /* 0 or 1: w4a16's codes have zero points, one a group */
    int32_t one_scale;   /* 0 or 1: w8a8, fp8 with group 0: one scale for the whole weight, not one a row */
    int32_t quantized_x; /* 0 or 1: w8a8, fp8: x comes as codes with scales; not with norm */
    int32_t one_x_scale; /* 0 or 1: quantized_x, group 0: one scale for all of x, not one a token */
    int32_t activation;  /* hone_activation */
    int32_t bias;        /* 0 or 1 */
    int32_t residual;    /* 0 or 1 */
    int32_t norm;        /* 0 or 1: x is normalized first */
    uint32_t reserved;   /* 0 */
} hone_quantized_linear;
#define HONE_QUANTIZED_LINEAR_INIT                                                             \
    {                                                                                          \
        sizeof(hone_quantized_linear), HONE_BF16, 0, 0, 8192, 0, HONE_QUANT_W4A16, 0, 0, 0, 0, \
            HONE_ACTIVATION_NONE, 0, 0, 0, 0                                                   \
    }

/* As hone_linear_args. weight has bytes: of w4a16 and w8a16 [ceil(out / 64)][ceil(in / 64)] blocks of 2048 or
 * 4096 without gaps, of w8a8 (two's complement) and fp8 [out, in], whose rows may lie weight_stride apart.
 * scales of w4a16 are of dtype, [ceil(out / 64)][groups][64] with groups = ceil(ceil(in / 64) * 64 / group),
 * or 1, in the order of docs/formats.md, with zeros of one byte each at the same places; of the others fp32,
 * [out], or one, or, in groups, [ceil(out / 128), in / 128]. */
typedef struct hone_quantized_linear_args {
    uint32_t struct_size;
    float epsilon;           /* of the norm, from 0 */
    const void* x;           /* [tokens, in], dtype; quantized_x: int8 or E4M3 */
    const float* x_scales;   /* quantized_x: [tokens], [tokens, in / 128] in groups, or one */
    const void* norm_weight; /* [in]; for operators with a norm */
    const void* weight;
    const void* scales;
    const void* zeros;
    const void* bias;     /* [out]; for operators with a bias */
    const void* residual; /* [tokens, out]; for operators with a residual */
    void* out;            /* [tokens, out] */
    void* workspace;      /* hone_operator_workspace() bytes; NULL when that is 0 */
    int64_t x_stride;
    int64_t x_scale_stride; /* between the scales of two tokens; one_x_scale: has no meaning */
    int64_t weight_stride;  /* w8a8 and fp8; packed codes have no rows */
    int64_t residual_stride;
    int64_t out_stride;
} hone_quantized_linear_args;
#define HONE_QUANTIZED_LINEAR_ARGS_INIT                                                                  \
    {                                                                                                    \
        sizeof(hone_quantized_linear_args), 1e-5f, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
            NULL, 0, 0, 0, 0, 0                                                                          \
    }

HONE_API hone_status hone_quantized_linear_prepare(hone_runtime* runtime, const hone_quantized_linear* linear,
                                                   hone_operator** op);
HONE_API hone_status hone_quantized_linear_run(const hone_operator* op, void* stream,
                                               const hone_quantized_linear_args* args, int64_t tokens);
HONE_API hone_status hone_quantized_linear_explain(const hone_runtime* runtime,
                                                   const hone_quantized_linear* linear, int64_t tokens,
                                                   hone_text_format format, char* text, size_t capacity,
                                                   size_t* length);

/* hone_fused_ffn with quantized weights, all of one format. The product of the first half lies in the
 * workspace, in dtype; where codes are multiplied with codes, the second half makes its own of that. */
typedef struct hone_quantized_ffn {
    uint32_t struct_size;
    int32_t dtype;        /* hone_dtype: fp16 or bf16 */
    int64_t hidden;       /* elements of a row of x and out */
    int64_t intermediate; /* elements of a row between the halves */
    int64_t max_tokens;   /* most rows of one call */
    int64_t group;        /* as in hone_quantized_linear; divides hidden and intermediate */
    int32_t format;       /* hone_quant_format */
    int32_t zeros;        /* 0 or 1: of all weights */
    int32_t one_scale;    /* 0 or 1: one for each weight */
    int32_t quantized_x;  /* 0 or 1: x, and only x, comes as codes with scales; not with norm */
    int32_t one_x_scale;  /* 0 or 1 */
    int32_t activation;   /* hone_activation */
    int32_t gated;        /* 0 or 1 */
    int32_t bias;         /* 0 or 1: of both halves; not with gated */
    int32_t residual;     /* 0 or 1 */
    int32_t norm;         /* 0 or 1: x is normalized first */
} hone_quantized_ffn;
#define HONE_QUANTIZED_FFN_INIT                                                                              \
    {                                                                                                        \
        sizeof(hone_quantized_ffn), HONE_BF16, 0, 0, 8192, 0, HONE_QUANT_W4A16, 0, 0, 0, 0, HONE_SILU, 1, 0, \
            0, 0                                                                                             \
    }

/* As hone_quantized_linear_args; weights have no gaps. `out` may be the residual itself also where that is x.
 */
typedef struct hone_quantized_ffn_args {
    uint32_t struct_size;
    float epsilon;           /* of the norm, from 0 */
    const void* x;           /* [tokens, hidden], dtype; quantized_x: int8 or E4M3 */
    const float* x_scales;   /* as in hone_quantized_linear_args */
    const void* norm_weight; /* [hidden]; for operators with a norm */
    const void* gate;        /* [intermediate, hidden]; for gated operators */
    const void* gate_scales;
    const void* gate_zeros;
    const void* up; /* [intermediate, hidden] */
    const void* up_scales;
    const void* up_zeros;
    const void* down; /* [hidden, intermediate] */
    const void* down_scales;
    const void* down_zeros;
    const void* up_bias;   /* [intermediate]; for operators with biases */
    const void* down_bias; /* [hidden]; for operators with biases */
    const void* residual;  /* [tokens, hidden]; for operators with a residual */
    void* out;             /* [tokens, hidden] */
    void* workspace;       /* hone_operator_workspace() bytes */
    int64_t x_stride;
    int64_t x_scale_stride;
    int64_t residual_stride;
    int64_t out_stride;
} hone_quantized_ffn_args;
#define HONE_QUANTIZED_FFN_ARGS_INIT                                                                        \
    {                                                                                                       \
        sizeof(hone_quantized_ffn_args), 1e-5f, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
            NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0                                            \
    }

HONE_API hone_status hone_quantized_ffn_prepare(hone_runtime* runtime, const hone_quantized_ffn* ffn,
                                                hone_operator** op);
HONE_API hone_status hone_quantized_ffn_run(const hone_operator* op, void* stream,
                                            const hone_quantized_ffn_args* args, int64_t tokens);
/* The text tells of both halves, in JSON as "first" and "second". */
HONE_API hone_status hone_quantized_ffn_explain(const hone_runtime* runtime, const hone_quantized_ffn* ffn,
                                                int64_t tokens, hone_text_format format, char* text,
                                                size_t capacity, size_t* length);

/* Codes and scales of weights of 16 or 32 bits, for hone_quantized_linear: [max_out, in] or fewer rows. */
typedef struct hone_quantize_weights {
    uint32_t struct_size;
    int32_t dtype;       /* hone_dtype: of the weight */
    int64_t in;          /* columns, 1 to 262144 */
    int64_t max_out;     /* most rows of one call, 1 to 1048576; in x max_out: up to 2^36 */
    int64_t group;       /* as in hone_quantized_linear */
    int32_t format;      /* hone_quant_format */
    int32_t zeros;       /* 0 or 1: w4a16's codes have zero points, one a group */
    int32_t one_scale;   /* 0 or 1: w8a8, fp8 with group 0: one scale for the whole weight, not one a row */
    int32_t scale_dtype; /* hone_dtype: of w4a16's scales, fp16 or bf16; the other formats' are fp32 always */
    int32_t search;      /* 0 or 1: w4a16: takes the scale of each group that leaves the least squared error;
                            else the one that clips nothing */
    uint32_t reserved;   /* 0 */
} hone_quantize_weights;
#define HONE_QUANTIZE_WEIGHTS_INIT \
    { sizeof(hone_quantize_weights), HONE_BF16, 0, 32768, 0, HONE_QUANT_W4A16, 0, 0, HONE_BF16, 1, 0 }

/* codes, scales and zeros as hone_quantized_linear_args says, without gaps; no part may overlap another. */
typedef struct hone_quantize_weights_args {
    uint32_t struct_size;
    uint32_t reserved;  /* 0 */
    const void* weight; /* [out, in], dtype */
    void* codes;
    void* scales;
    void* zeros;           /* for operators with zeros */
    void* workspace;       /* hone_operator_workspace() bytes */
    int64_t weight_stride; /* 0: in */
} hone_quantize_weights_args;
#define HONE_QUANTIZE_WEIGHTS_ARGS_INIT \
    { sizeof(hone_quantize_weights_args), 0, NULL, NULL, NULL, NULL, NULL, 0 }

HONE_API hone_status hone_quantize_weights_prepare(hone_runtime* runtime,
                                                   const hone_quantize_weights* weights, hone_operator** op);
/* Quantizes `out` rows (0: does nothing) and, unlike other runs, waits until that is done; HONE_CAPTURING
 * under stream capture. HONE_BAD_ARGUMENT for weights that are infinite or no number and for scales beyond
 * the range of scale_dtype, with the first of them in hone_last_error(); what is written then means nothing.
 */
HONE_API hone_status hone_quantize_weights_run(const hone_operator* op, void* stream,
                                               const hone_quantize_weights_args* args, int64_t out);
HONE_API hone_status hone_quantize_weights_explain(const hone_runtime* runtime,
                                                   const hone_quantize_weights* weights, int64_t out,
                                                   hone_text_format format, char* text, size_t capacity,
                                                   size_t* length);
/* The same bits by the host, in host memory and without a GPU; weight_stride has to be 0 or `in`, the
 * workspace is not used. `threads`: 0: as many as the machine has. */
HONE_API hone_status hone_quantize_weights_on_host(const hone_quantize_weights* weights,
                                                   const hone_quantize_weights_args* args, int64_t out,
                                                   int32_t threads);

/* What a KV cache holds. */
typedef enum hone_kv_dtype {
    HONE_KV_SAME = 0, /* the operator's dtype */
    HONE_KV_FP8 = 1   /* E4M3 codes; code * scale of its kv head approximates the element */
} hone_kv_dtype;

/* out = softmax(scale * q k^T + mask) v for each sequence and head, accumulated in fp32. heads / kv_heads
 * neighbouring heads of q share one of k and v. Causal is aligned at the end: of a sequence with q_len
 * queries and kv_len keys, query i sees key j <= i + kv_len - q_len. A query that sees no key gets zeros, and
 * -infinity as its log-sum-exp; what stands in k and v beyond a sequence's end, also NaN, changes nothing.
 *
 * One operator serves prefill and decode: calls of up to 16 queries a sequence (not packed) take kernels that
 * read a KV cache at the speed of memory, others those of prefill. Lengths, starts and page tables are on the
 * device: a captured graph may be replayed with others. */
typedef struct hone_attention {
    uint32_t struct_size;
    int32_t dtype;      /* hone_dtype: of q and out, and of k and v */
    int64_t heads;      /* of q and out */
    int64_t kv_heads;   /* of k and v, a divisor of heads; 0: as many */
    int64_t head_dim;   /* 1 to 256 */
    int64_t max_batch;  /* most sequences of one call */
    int64_t max_q_len;  /* most queries of a sequence */
    int64_t max_kv_len; /* most keys of a sequence: its capacity in a cache */
    int64_t min_q_len;  /* fewest queries of a call, from 1: kernels for fewer are not prepared */
    int64_t window;     /* most keys that a query sees, its own included; needs causal; 0: all */
    int64_t page_size;  /* tokens of a page of the cache, for max_q_len up to 16, not packed; 0: not paged */
    int32_t kv_dtype;   /* hone_kv_dtype: of k and v; fp8 for max_q_len up to 16, not packed */
    int32_t causal;     /* 0 or 1 */
    int32_t lengths;    /* 0 or 1: kv_lengths says how many keys each sequence has; else all have kv_len */
    int32_t packed;     /* 0 or 1: starts cut packed tensors into sequences; not with lengths */
    int32_t softcap;    /* 0 or 1: scores s become softcap * tanh(s / softcap), before the mask */
    int32_t lse;        /* 0 or 1: the log-sum-exp of the scores is written, too */
} hone_attention;
#define HONE_ATTENTION_INIT \
    { sizeof(hone_attention), HONE_BF16, 0, 0, 0, 64, 8192, 8192, 1, 0, 0, HONE_KV_SAME, 1, 0, 0, 0, 0 }

/* One call. Strides are elements between neighbours of [batch, tokens, heads, head_dim], whose last dimension
 * is contiguous; 0: between heads head_dim, between tokens all heads of a token, between sequences (batch)
 * all tokens of one, that stride apart. Of a paged cache the batch stride is the distance of two pages, of
 * packed tensors it means nothing. A call of up to 16 queries (not packed) needs the same strides for k and
 * v. 16 bytes always suffice as alignment of pointers and strides. out may be q itself, with the same
 * strides; other overlaps are not allowed. */
typedef struct hone_attention_args {
    uint32_t struct_size;
    float scale;       /* of q k^T; 0 or less: 1 / sqrt(head_dim) */
    float softcap;     /* above 0; for operators with a softcap */
    uint32_t reserved; /* 0 */
    const void* q;     /* [batch, q_len, heads, head_dim]; packed: [q_tokens, heads, head_dim] */
    const void* k;     /* [batch, kv_len, kv_heads, head_dim]; packed: [kv_tokens, kv_heads, head_dim]; paged:
                          [pool_pages, page_size, kv_heads, head_dim] */
    const void* v;     /* as k */
    void* out;         /* as q */
    float* lse;        /* [batch, heads, q_len]; packed: [heads, q_tokens]; natural logarithm */
    const int32_t* kv_lengths; /* [batch], 0 to kv_len, the call's own tokens included; with lengths */
    const int32_t* q_starts;   /* [batch + 1], from 0, never decreasing: sequence b has the tokens from */
    const int32_t* kv_starts;  /* starts[b] to starts[b + 1]; for packed operators */
    const int32_t* page_table; /* [batch, page_table_stride]: pages of each sequence, 0 to pool_pages - 1;
                                  entries beyond a sequence's length are not used */
    const float* k_scale;      /* [kv_heads]; for an fp8 cache */
    const float* v_scale;      /* [kv_heads]; for an fp8 cache */
    void* workspace;           /* hone_attention_workspace() bytes; NULL when that is 0 */
    int64_t q_batch_stride;
    int64_t q_token_stride;
    int64_t q_head_stride;
    int64_t k_batch_stride;
    int64_t k_token_stride;
    int64_t k_head_stride;
    int64_t v_batch_stride;
    int64_t v_token_stride;
    int64_t v_head_stride;
    int64_t out_batch_stride;
    int64_t out_token_stride;
    int64_t out_head_stride;
    int64_t page_table_stride; /* entries of a row; 0: as many pages as kv_len takes */
    int64_t pool_pages;        /* pages of the cache; for paged operators */
    int64_t q_tokens;          /* of all sequences of a packed call; 0: nothing is done */
    int64_t kv_tokens;         /* the same of k and v, from 1 */
} hone_attention_args;
#define HONE_ATTENTION_ARGS_INIT                                                                          \
    {                                                                                                     \
        sizeof(hone_attention_args), 0.0f, 0.0f, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
            NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                              \
    }

/* Loads, or compiles, every kernel that a call of up to these sizes can reach. */
HONE_API hone_status hone_attention_prepare(hone_runtime* runtime, const hone_attention* attention,
                                            hone_operator** op);
/* Enqueues a prepared attention. q_len and kv_len are those of every sequence; where lengths or starts are on
 * the device, the most that any has. kv_len from 1; with batch or q_len 0 nothing is done. */
HONE_API hone_status hone_attention_run(const hone_operator* op, void* stream,
                                        const hone_attention_args* args, int64_t batch, int64_t q_len,
                                        int64_t kv_len);
/* Bytes of device memory, aligned to 256, that any call of up to these sizes needs; 0: none.
 * hone_operator_workspace() is not for attention. */
HONE_API hone_status hone_attention_workspace(const hone_operator* op, int64_t batch, int64_t q_len,
                                              int64_t kv_len, size_t* bytes);
HONE_API hone_status hone_attention_explain(const hone_runtime* runtime, const hone_attention* attention,
                                            int64_t batch, int64_t q_len, int64_t kv_len,
                                            hone_text_format format, char* text, size_t capacity,
                                            size_t* length);

typedef enum hone_rope_style {
    HONE_ROPE_HALF = 0,       /* elements i and i + rotary_dim / 2 turn together, as in Llama */
    HONE_ROPE_INTERLEAVED = 1 /* 2 i and 2 i + 1, as in GPT-J */
} hone_rope_style;

/* The rotary embedding of new queries and keys, and the append of keys and values to a KV cache, in one
 * launch: a pair (x, y) of a token at position p becomes (x cos - y sin, y cos + x sin) with row p of the
 * tables. With a norm each head of q and k is normalized first: x * rsqrt(mean(x^2) + epsilon) * weight.
 *
 * A token whose position is negative, or has no row in the tables, is left out altogether; of one for which
 * the cache has no room, page or slot, only the query is written. */
typedef struct hone_rope_kv_append {
    uint32_t struct_size;
    int32_t dtype;      /* hone_dtype: of q, k, v and out */
    int64_t heads;      /* of q */
    int64_t kv_heads;   /* of k and v; 0: as many */
    int64_t head_dim;   /* 1 to 256 */
    int64_t rotary_dim; /* leading elements of a head that turn, even; 0: none; -1: all */
    int64_t max_tokens; /* most tokens of one call, of all its sequences */
    int64_t page_size;  /* tokens of a page of the cache; 0: not paged */
    int32_t kv_dtype;   /* hone_kv_dtype: of the cache */
    int32_t style;      /* hone_rope_style */
    int32_t norm;       /* 0 or 1 */
    int32_t slots;      /* 0 or 1: each token has its position and its slot in the cache; else every sequence
                           has q_len new tokens, the last of its kv_lengths */
} hone_rope_kv_append;
#define HONE_ROPE_KV_APPEND_INIT \
    { sizeof(hone_rope_kv_append), HONE_BF16, 0, 0, 0, -1, 8192, 0, HONE_KV_SAME, HONE_ROPE_HALF, 0, 0 }

/* Strides as in hone_attention_args. out may be q itself, with the same strides; other overlaps are not
 * allowed. */
typedef struct hone_rope_kv_append_args {
    uint32_t struct_size;
    float epsilon;             /* of the norm, from 0 */
    const void* q;             /* [tokens, heads, head_dim] */
    const void* k;             /* [tokens, kv_heads, head_dim] */
    const void* v;             /* [tokens, kv_heads, head_dim] */
    void* out;                 /* [tokens, heads, head_dim]: the rotated queries */
    void* k_cache;             /* [sequences, kv_len, kv_heads, head_dim] or [pages, page_size, ...] */
    void* v_cache;             /* as k_cache, with the same strides */
    const float* cos;          /* [table_rows, rotary_dim / 2]; where anything turns */
    const float* sin;          /* [table_rows, rotary_dim / 2]; where anything turns */
    const int32_t* kv_lengths; /* without slots, [tokens / q_len]: tokens of each sequence, its q_len new ones
                                  included */
    const int32_t* page_table; /* without slots, paged: [tokens / q_len, page_table_stride] */
    const int32_t* positions;  /* with slots, where anything turns: [tokens] */
    const int32_t* slots;      /* with slots, [tokens]: page * page_size + place on the page, or sequence *
                                  kv_len + place; negative: none */
    const float* k_scale;      /* [kv_heads]; for an fp8 cache, which gets k / k_scale */
    const float* v_scale;      /* [kv_heads]; for an fp8 cache */
    const void* q_weight;      /* [head_dim], dtype; for operators with a norm */
    const void* k_weight;      /* [head_dim], dtype; for operators with a norm */
    int64_t q_token_stride;
    int64_t q_head_stride;
    int64_t k_token_stride;
    int64_t k_head_stride;
    int64_t v_token_stride;
    int64_t v_head_stride;
    int64_t out_token_stride;
    int64_t out_head_stride;
    int64_t cache_batch_stride; /* of a sequence, or a page */
    int64_t cache_token_stride;
    int64_t cache_head_stride;
    int64_t page_table_stride; /* entries of a row; 0: as many pages as kv_len takes */
    int64_t q_len;             /* without slots: tokens of each sequence, a divisor of the call's tokens */
    int64_t kv_len;            /* tokens that a sequence has room for, from 1 */
    int64_t pool_pages;        /* pages of the cache, or sequences of one without pages; 0, for that without
                                  slots: tokens / q_len */
    int64_t table_rows;        /* positions that cos and sin know, from 1; where anything turns */
} hone_rope_kv_append_args;
#define HONE_ROPE_KV_APPEND_ARGS_INIT                                                                        \
    {                                                                                                        \
        sizeof(hone_rope_kv_append_args), 1e-5f, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
            NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0               \
    }

HONE_API hone_status hone_rope_kv_append_prepare(hone_runtime* runtime, const hone_rope_kv_append* rope,
                                                 hone_operator** op);
/* Enqueues a prepared append for `tokens` tokens (0: does nothing). */
HONE_API hone_status hone_rope_kv_append_run(const hone_operator* op, void* stream,
                                             const hone_rope_kv_append_args* args, int64_t tokens);
HONE_API hone_status hone_rope_kv_append_explain(const hone_runtime* runtime, const hone_rope_kv_append* rope,
                                                 int64_t tokens, hone_text_format format, char* text,
                                                 size_t capacity, size_t* length);

#ifdef __cplusplus
}
#endif

#endif /* HONE_H */
