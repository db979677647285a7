#include <cuda.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

#include "tests/fake_driver/cuda/entry_point.h"

using namespace hone::fake;

namespace {

CUresult copy_from_host(CUdeviceptr to, const void* from, size_t bytes) {
    bool valid = false;
    char* memory = machine().host_memory(to, bytes, &valid);
    if (valid && memory != nullptr) std::memcpy(memory, from, bytes);
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult copy_to_host(void* to, CUdeviceptr from, size_t bytes) {
    bool valid = false;
    const char* memory = machine().host_memory(from, bytes, &valid);
    if (valid && memory != nullptr) std::memcpy(to, memory, bytes);
    if (valid && memory == nullptr) std::memset(to, 0, bytes);
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// As the driver does before it gives memory back.
void wait_for_context() {
    static_cast<void>(wait(in_context([](CUctx_st& context) {
        return state_of(context, context.hung && machine().script.setting("free", "waits") != nullptr);
    })));
}

template <class T>
CUresult set_memory(CUstream stream, CUdeviceptr to, T value, size_t count) {
    return in_context([&](CUctx_st& context) {
        return machine().enqueue(resolve(context, stream), [=](CUstream_st&) {
            return machine().set_memory(to, count * sizeof(T), &value, sizeof(T));
        });
    });
}

}  // namespace

extern "C" {

CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
    return in_context([&](CUctx_st& context) { return machine().allocate(context, bytes, address); });
}

CUresult cuMemFree(CUdeviceptr address) {
    wait_for_context();
    const std::lock_guard lock(mutex);
    return machine().release(address);
}

CUresult cuMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
    return in_context([&](CUctx_st& context) {
        const auto total = machine().device_of(context).memory_bytes;
        *total_bytes = static_cast<size_t>(total);
        *free_bytes = static_cast<size_t>(total - machine().allocated_bytes(context.device));
        return CUDA_SUCCESS;
    });
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
    return in_context([&](CUctx_st&) { return copy_from_host(to, from, bytes); });
}

CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
    bool hung = false;
    const CUresult result = in_context([&](CUctx_st& context) {
        hung = context.default_stream->hung;
        return copy_to_host(to, from, bytes);
    });
    return hung ? wait(CUDA_ERROR_NOT_READY) : result;
}

CUresult cuMemAllocHost(void** memory, size_t bytes) {
    return in_context([&](CUctx_st&) {
        *memory = std::malloc(bytes);
        if (*memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
        machine().note_host_memory(*memory, bytes);
        return CUDA_SUCCESS;
    });
}

CUresult cuMemFreeHost(void* memory) {
    wait_for_context();
    const std::lock_guard lock(mutex);
    machine().forget_host_memory(memory);
    std::free(memory);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
    return in_context([&](CUctx_st& context) {
        return machine().enqueue(resolve(context, stream), [=](CUstream_st& on) {
            if (!machine().script.fire("copy", {}).empty()) on.hung = on.context->hung = true;
            return copy_from_host(to, from, bytes);
        });
    });
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return in_context([&](CUctx_st& context) {
        return machine().enqueue(resolve(context, stream),
                                 [=](CUstream_st&) { return copy_to_host(to, from, bytes); });
    });
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return in_context([&](CUctx_st& context) {
        return machine().enqueue(resolve(context, stream),
                                 [=](CUstream_st&) { return machine().copy_memory(to, from, bytes); });
    });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    return set_memory(stream, to, value, count);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
    return set_memory(stream, to, value, count);
}

}  // extern "C"
