// RMSNorm for bench/torch/peers.py: the public C++ API behind five C functions, so that Hone runs in the same
// process, on the same stream and in the same CUDA graphs as PyTorch's kernels. For measuring only; errors
// are printed.
#include <cstdio>
#include <memory>

#include <hone/hone.h>

extern "C" {

hone::Runtime* hone_bridge_open() {
    try {
        return std::make_unique<hone::Runtime>().release();
    } catch (const hone::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return nullptr;
    }
}

/// dtype: 0 fp32, 1 fp16, 2 bf16.
hone::RmsNormKernel* hone_bridge_rmsnorm(hone::Runtime* runtime, long long hidden, long long max_rows,
                                         int dtype, int residual) {
    try {
        const hone::RmsNorm norm{.hidden = hidden,
                                 .max_rows = max_rows,
                                 .dtype = static_cast<hone::Dtype>(dtype),
                                 .residual = residual != 0};
        return std::make_unique<hone::RmsNormKernel>(runtime->prepare(norm)).release();
    } catch (const hone::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return nullptr;
    }
}

/// How the kernel of the largest bucket was chosen: 0 exact, more: see hone::Origin.
int hone_bridge_origin(const hone::RmsNormKernel* kernel) {
    return static_cast<int>(kernel->report().buckets.back().origin);
}

int hone_bridge_run(const hone::RmsNormKernel* kernel, CUstream_st* stream, const void* x,
                    const void* residual, const void* weight, void* out, void* sum, long long rows) {
    const hone::RmsNormArgs args{.x = x, .residual = residual, .weight = weight, .out = out, .sum = sum};
    return static_cast<int>(kernel->run(stream, args, rows));
}

const char* hone_bridge_status(int status) {
    return hone::describe(static_cast<hone::Status>(status)).data();
}

}  // extern "C"
