// libfake_cuda.so: a CUDA driver without a GPU, good enough for the whole tuner to run against. Kernels do
// nothing and take a made-up time (machine.h); results that the measuring harness reads are the zeros of
// fresh memory, which mean "all fine". HONE_FAKE_SCRIPT makes things go wrong (script.h); tests look at what
// happened through fake_cuda.h. Thread-safe.
#include <cuda.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "tests/fake_driver/fake_cuda.h"
#include "tests/fake_driver/machine.h"

#undef cuEventElapsedTime  // the name of drivers before 570, exported beside today's

namespace {

using namespace hone::fake;

std::mutex mutex;

Machine& machine() {
    static auto* const state = new Machine;  // never destroyed: threads may hang in it
    return *state;
}

// Runs `work` with the current context, unless there is none or it has failed for good.
template <class Function>
CUresult in_context(Function work) {
    const std::lock_guard lock(mutex);
    CUctx_st* context = machine().current_context();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (context->sticky != CUDA_SUCCESS) return context->sticky;
    return work(*context);
}

// The default stream of the current context for nullptr.
CUstream_st& resolve(CUctx_st& context, CUstream stream) {
    return stream == nullptr ? *context.default_stream : *stream;
}

// What a query of this stream says: the context's error, not ready when a kernel hangs.
CUresult state_of(const CUctx_st& context, bool hung) {
    if (context.sticky != CUDA_SUCCESS) return context.sticky;
    return hung ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

// Like waiting for a kernel that never ends: only a signal ends it.
CUresult wait(CUresult state) {
    while (state == CUDA_ERROR_NOT_READY) pause();
    return state;
}

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

template <class T>
CUresult set_memory(CUstream stream, CUdeviceptr to, T value, size_t count) {
    return in_context([&](CUctx_st& context) {
        return machine().enqueue(resolve(context, stream), [=](CUstream_st&) {
            return machine().set_memory(to, count * sizeof(T), &value, sizeof(T));
        });
    });
}

CUresult elapsed_time(float* milliseconds, CUevent start, CUevent stop) {
    const std::lock_guard lock(mutex);
    if (!start->recorded || !stop->recorded) return CUDA_ERROR_INVALID_HANDLE;
    const CUresult state = state_of(*stop->context, start->hung || stop->hung);
    if (state == CUDA_SUCCESS) *milliseconds = static_cast<float>((stop->clock_us - start->clock_us) / 1e3);
    return state;
}

bool known_device(CUdevice device) {
    return device >= 0 && device < static_cast<int>(machine().devices.size());
}

struct ErrorText {
    const char* name;
    const char* text;
};

const ErrorText* text_of(CUresult result) {
    static const std::map<int, ErrorText> texts = {
        {0, {"CUDA_SUCCESS", "no error"}},
        {1, {"CUDA_ERROR_INVALID_VALUE", "invalid argument"}},
        {2, {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}},
        {100, {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}},
        {101, {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"}},
        {200, {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"}},
        {201, {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}},
        {209, {"CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"}},
        {400, {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"}},
        {500, {"CUDA_ERROR_NOT_FOUND", "named symbol not found"}},
        {600, {"CUDA_ERROR_NOT_READY", "device not ready"}},
        {700, {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}},
        {701, {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"}},
        {719, {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}},
        {803,
         {"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
          "system has unsupported display driver / cuda driver combination"}},
        {900, {"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"}},
        {912,
         {"CUDA_ERROR_INVALID_CLUSTER_SIZE",
          "a kernel launch error has occurred due to cluster misconfiguration"}},
    };
    const auto at = texts.find(static_cast<int>(result));
    return at == texts.end() ? nullptr : &at->second;
}

LaunchRequest request_of(CUfunction function, const CUlaunchConfig& config, bool extended) {
    LaunchRequest request{.function = function,
                          .record = {.kernel = {},
                                     .grid = {config.gridDimX, config.gridDimY, config.gridDimZ},
                                     .block = {config.blockDimX, config.blockDimY, config.blockDimZ},
                                     .cluster = {1, 1, 1},
                                     .shared_bytes = config.sharedMemBytes,
                                     .extended = extended ? 1 : 0,
                                     .programmatic = 0,
                                     .parameter_count = 0,
                                     .parameters = {},
                                     .duration_us = 0},
                          .pointers = {}};
    for (unsigned int i = 0; i < config.numAttrs; ++i) {
        const CUlaunchAttribute& attribute = config.attrs[i];
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            request.record.cluster[0] = attribute.value.clusterDim.x;
            request.record.cluster[1] = attribute.value.clusterDim.y;
            request.record.cluster[2] = attribute.value.clusterDim.z;
        }
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
            request.record.programmatic = attribute.value.programmaticStreamSerializationAllowed;
        }
    }
    return request;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned int) {
    const std::lock_guard lock(mutex);
    machine().reset_if_script_changed();
    if (const Rule* rule = machine().script.setting("driver", "init"))
        return static_cast<CUresult>(rule->number("init"));
    return machine().devices.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
    const std::lock_guard lock(mutex);
    const Rule* rule = machine().script.setting("driver", "version");
    *version = rule == nullptr ? 13000 : static_cast<int>(rule->number("version"));
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult result, const char** name) {
    const ErrorText* text = text_of(result);
    *name = text == nullptr ? nullptr : text->name;
    return text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult result, const char** description) {
    const ErrorText* text = text_of(result);
    *description = text == nullptr ? nullptr : text->text;
    return text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// Devices.

CUresult cuDeviceGetCount(int* count) {
    const std::lock_guard lock(mutex);
    *count = static_cast<int>(machine().devices.size());
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    const std::lock_guard lock(mutex);
    if (!known_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
    const std::lock_guard lock(mutex);
    if (!known_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    std::strncpy(name, machine().devices[static_cast<std::size_t>(device)].name.c_str(),
                 static_cast<std::size_t>(length));
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    const std::lock_guard lock(mutex);
    if (!known_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *value = machine().devices[static_cast<std::size_t>(device)].attribute(attribute);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
    const std::lock_guard lock(mutex);
    if (!known_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *bytes = static_cast<size_t>(machine().devices[static_cast<std::size_t>(device)].memory_bytes);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    const std::lock_guard lock(mutex);
    if (!known_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    std::memset(uuid->bytes, device + 1, sizeof(uuid->bytes));
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
    const std::lock_guard lock(mutex);
    if (!known_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    std::strncpy(id, machine().devices[static_cast<std::size_t>(device)].pci_bus_id.c_str(),
                 static_cast<std::size_t>(length));
    return CUDA_SUCCESS;
}

// Contexts.

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

// Modules and functions.

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

// Memory.

CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
    return in_context([&](CUctx_st& context) { return machine().allocate(context, bytes, address); });
}

CUresult cuMemFree(CUdeviceptr address) {
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

// Streams.

CUresult cuStreamCreate(CUstream* stream, unsigned int) {
    return in_context([&](CUctx_st& context) {
        *stream = new CUstream_st{.context = &context, .clock_us = 0, .hung = false, .capture = nullptr};
        ++machine().live["stream"];
        return CUDA_SUCCESS;
    });
}

CUresult cuStreamDestroy(CUstream stream) {
    const std::lock_guard lock(mutex);
    delete stream;
    --machine().live["stream"];
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream) {
    return in_context([&](CUctx_st& context) {
        const CUstream_st& resolved = resolve(context, stream);
        return resolved.capture != nullptr ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                           : state_of(context, resolved.hung);
    });
}

CUresult cuStreamSynchronize(CUstream stream) { return wait(cuStreamQuery(stream)); }

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
    return in_context([&](CUctx_st&) {
        if (stream == nullptr || stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        stream->capture = std::make_unique<CUgraph_st>();
        return CUDA_SUCCESS;
    });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
    const std::lock_guard lock(mutex);
    if (stream->capture == nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    *graph = stream->capture.release();
    ++machine().live["graph"];
    return stream->context->sticky;
}

// Events.

CUresult cuEventCreate(CUevent* event, unsigned int) {
    return in_context([&](CUctx_st& context) {
        *event = new CUevent_st{.context = &context, .recorded = false, .hung = false, .clock_us = 0};
        ++machine().live["event"];
        return CUDA_SUCCESS;
    });
}

CUresult cuEventDestroy(CUevent event) {
    const std::lock_guard lock(mutex);
    delete event;
    --machine().live["event"];
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    return in_context([&](CUctx_st& context) {
        return machine().enqueue(resolve(context, stream), [=](CUstream_st& on) {
            event->recorded = true;
            event->hung = on.hung;
            event->clock_us = on.clock_us;
            return CUDA_SUCCESS;
        });
    });
}

CUresult cuEventQuery(CUevent event) {
    const std::lock_guard lock(mutex);
    return state_of(*event->context, event->hung);
}

CUresult cuEventSynchronize(CUevent event) { return wait(cuEventQuery(event)); }

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent stop) {
    return elapsed_time(milliseconds, start, stop);
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent stop) {
    return elapsed_time(milliseconds, start, stop);
}

// Graphs.

CUresult cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, unsigned long long) {
    return in_context([&](CUctx_st&) {
        *executable = new CUgraphExec_st{.nodes = graph->nodes};
        ++machine().live["graph_exec"];
        return CUDA_SUCCESS;
    });
}

CUresult cuGraphUpload(CUgraphExec, CUstream) {
    return in_context([](CUctx_st&) { return CUDA_SUCCESS; });
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
    return in_context([&](CUctx_st& context) {
        for (const Work& work : executable->nodes) {
            if (const CUresult result = work(resolve(context, stream)); result != CUDA_SUCCESS) return result;
        }
        return CUDA_SUCCESS;
    });
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
    const std::lock_guard lock(mutex);
    delete executable;
    --machine().live["graph_exec"];
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
    const std::lock_guard lock(mutex);
    delete graph;
    --machine().live["graph"];
    return CUDA_SUCCESS;
}

// Launches.

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z,
                        unsigned int shared_bytes, CUstream stream, void** parameters, void**) {
    CUlaunchConfig config{};
    config.gridDimX = grid_x;
    config.gridDimY = grid_y;
    config.gridDimZ = grid_z;
    config.blockDimX = block_x;
    config.blockDimY = block_y;
    config.blockDimZ = block_z;
    config.sharedMemBytes = shared_bytes;
    return in_context([&](CUctx_st& context) {
        return machine().launch(resolve(context, stream), request_of(function, config, false), parameters);
    });
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void**) {
    return in_context([&](CUctx_st& context) {
        return machine().launch(resolve(context, config->hStream), request_of(function, *config, true),
                                parameters);
    });
}

// For tests: fake_cuda.h.

int fake_cuda_launch_count() {
    const std::lock_guard lock(mutex);
    return machine().launch_count();
}

const FakeLaunch* fake_cuda_launch(int index) {
    const std::lock_guard lock(mutex);
    const auto& kept = machine().launches();
    const int first = machine().launch_count() - static_cast<int>(kept.size());
    if (index < first || index >= machine().launch_count()) return nullptr;
    return &kept[static_cast<std::size_t>(index - first)];
}

int fake_cuda_live(const char* kind) {
    const std::lock_guard lock(mutex);
    return machine().live[kind];
}

void fake_cuda_reset() {
    const std::lock_guard lock(mutex);
    machine().reset();
}

}  // extern "C"
