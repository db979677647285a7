#include <cuda.h>

#include <mutex>

#include "tests/fake_driver/cuda/entry_point.h"

using namespace hone::fake;

extern "C" {

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    const std::lock_guard lock(mutex);
    if (!known_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *context = machine().primary_contexts[static_cast<std::size_t>(device)].get();
    ++(*context)->retained;
    ++machine().live["context"];
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    const std::lock_guard lock(mutex);
    if (!known_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    CUctx_st& context = *machine().primary_contexts[static_cast<std::size_t>(device)];
    if (context.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    --context.retained;
    --machine().live["context"];
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
    *context = context_stack.empty() ? nullptr : context_stack.back();
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    if (!context_stack.empty()) context_stack.pop_back();
    if (context != nullptr) context_stack.push_back(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    context_stack.push_back(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
    if (context_stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    *context = context_stack.back();
    context_stack.pop_back();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
    return in_context([&](CUctx_st& context) {
        *device = context.device;
        return CUDA_SUCCESS;
    });
}

CUresult cuCtxSynchronize() {
    return wait(in_context([](CUctx_st& context) { return state_of(context, context.hung); }));
}

}  // extern "C"
