/* RMSNorm from C: prepare once, run, and check every element against a double-precision reference.
 *   build/release/examples/c_rms_norm
 * Exit codes: 0 right, 1 failure, 3 no usable GPU, 4 a wrong result. Device memory comes from the driver that
 * Hone has loaded, so that the example needs no CUDA toolkit: a program of yours uses cudaMalloc and cudaMemcpy
 * instead. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <hone.h>

enum { rows = 300, hidden = 4096 };
static const float epsilon = 1e-5f;

typedef unsigned long long device_pointer;

/* A function of the CUDA driver, or the end of the program. */
static void* driver_function(const char* name) {
    const char* other = getenv("HONE_CUDA_LIBRARY");
    void* library = dlopen(other != NULL ? other : "libcuda.so.1", RTLD_NOW);
    void* function = library != NULL ? dlsym(library, name) : NULL;
    if (function == NULL) {
        fprintf(stderr, "the CUDA driver has no %s\n", name);
        exit(1);
    }
    return function;
}

static void* device_copy(const float* values, size_t count) {
    int (*allocate)(device_pointer*, size_t);
    int (*copy)(device_pointer, const void*, size_t);
    *(void**)&allocate = driver_function("cuMemAlloc_v2");
    *(void**)&copy = driver_function("cuMemcpyHtoD_v2");
    device_pointer address = 0;
    if (allocate(&address, count * sizeof(float)) != 0 || copy(address, values, count * sizeof(float)) != 0) {
        fprintf(stderr, "no device memory\n");
        exit(1);
    }
    return (void*)address;
}

static void host_copy(float* values, const void* address, size_t count) {
    int (*copy)(void*, device_pointer, size_t);
    *(void**)&copy = driver_function("cuMemcpyDtoH_v2");
    if (copy(values, (device_pointer)address, count * sizeof(float)) != 0) exit(1);
}

/* Largest difference to the reference, relative to its root mean square, which is about 1. */
static double error_of(const float* y, const float* x, const float* weight) {
    double largest = 0;
    for (size_t row = 0; row < rows; ++row, y += hidden, x += hidden) {
        double squares = 0;
        for (size_t i = 0; i < hidden; ++i) squares += (double)x[i] * x[i];
        const double factor = 1 / sqrt(squares / hidden + epsilon);
        for (size_t i = 0; i < hidden; ++i) largest = fmax(largest, fabs(y[i] - x[i] * factor * weight[i]));
    }
    return largest;
}

static int failed(hone_status status) {
    fprintf(stderr, "%s\n", hone_last_error());
    return status == HONE_NO_GPU ? 3 : 1;
}

int main(void) {
    hone_runtime* runtime = NULL;
    hone_status status = hone_runtime_create(NULL, &runtime);
    if (status != HONE_OK) return failed(status);

    hone_rms_norm description = HONE_RMS_NORM_INIT;
    description.hidden = hidden;
    description.max_rows = 512;
    description.dtype = HONE_FP32;
    hone_operator* norm = NULL;
    status = hone_rms_norm_prepare(runtime, &description, &norm);
    if (status != HONE_OK) return failed(status);
    hone_runtime_freeze(runtime); /* from here on nothing compiles */

    float* x = malloc(sizeof(float) * rows * hidden);
    float* y = calloc((size_t)rows * hidden, sizeof(float));
    float weight[hidden];
    for (size_t i = 0; i < (size_t)rows * hidden; ++i) x[i] = (float)(rand() % 2001 - 1000) / 500.0f;
    for (size_t i = 0; i < hidden; ++i) weight[i] = 1.0f + (float)i / hidden;

    hone_norm_args args = HONE_NORM_ARGS_INIT;
    args.x = device_copy(x, (size_t)rows * hidden);
    args.weight = device_copy(weight, hidden);
    args.out = device_copy(y, (size_t)rows * hidden);
    args.epsilon = epsilon;
    status = hone_norm_run(norm, NULL, &args, rows);
    if (status != HONE_OK) return failed(status);

    host_copy(y, args.out, (size_t)rows * hidden);
    const double error = error_of(y, x, weight);
    printf("%d x %d on %s: largest error %.2e (allowed 1e-5)\n", rows, hidden,
           hone_runtime_device_name(runtime), error);
    free(x);
    free(y);
    hone_operator_destroy(norm);
    hone_runtime_destroy(runtime);
    return error <= 1e-5 ? 0 : 4;
}
