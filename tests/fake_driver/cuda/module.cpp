#include <cuda.h>

#include <mutex>

#include "tests/fake_driver/cuda/entry_point.h"

using namespace hone::fake;

extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    return in_context([&](CUctx_st& context) {
        return machine().load_module(context, static_cast<const char*>(image), module);
    });
}

CUresult cuModuleUnload(CUmodule module) {
    const std::lock_guard lock(mutex);
    delete module;
    --machine().live["module"];
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    return in_context([&](CUctx_st&) {
        const auto at = module->functions.find(name);
        if (at == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
        *function = &at->second;
        return CUDA_SUCCESS;
    });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
    return in_context([&](CUctx_st&) {
        switch (attribute) {
            case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
            case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = function->kernel.shared_bytes; break;
            case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = function->kernel.spill_bytes; break;
            case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = function->kernel.registers; break;
            case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
                *value = function->max_dynamic_shared_bytes;
                break;
            case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
                *value = function->non_portable_cluster;
                break;
            default: *value = 0;
        }
        return CUDA_SUCCESS;
    });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    return in_context([&](CUctx_st& context) {
        const int limit =
            machine().device_of(context).attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
        switch (attribute) {
            case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
                if (value < 0 || value + function->kernel.shared_bytes > limit)
                    return CUDA_ERROR_INVALID_VALUE;
                function->max_dynamic_shared_bytes = value;
                return CUDA_SUCCESS;
            case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
                function->non_portable_cluster = value;
                return CUDA_SUCCESS;
            default: return CUDA_ERROR_INVALID_VALUE;
        }
    });
}

}  // extern "C"
