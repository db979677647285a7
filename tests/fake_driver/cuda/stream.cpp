#include <cuda.h>

#include <memory>
#include <mutex>

#include "tests/fake_driver/cuda/entry_point.h"

using namespace hone::fake;

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned int) {
    return in_context([&](CUctx_st& context) {
        *stream = new CUstream_st{.context = &context, .capture = nullptr, .late = nullptr};
        context.streams.insert(*stream);
        ++machine().live["stream"];
        return CUDA_SUCCESS;
    });
}

CUresult cuStreamDestroy(CUstream stream) {
    const std::lock_guard lock(mutex);
    stream->context->streams.erase(stream);
    delete stream;
    --machine().live["stream"];
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream) {
    return in_context([&](CUctx_st& context) {
        const CUstream_st& resolved = resolve(context, stream);
        if (resolved.capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        if (resolved.late && !resolved.late->done) return CUDA_ERROR_NOT_READY;
        return state_of(context, resolved.hung);
    });
}

CUresult cuStreamSynchronize(CUstream stream) {
    const CUresult settled = in_context([&](CUctx_st& context) {
        resolve(context, stream).late.reset();
        return CUDA_SUCCESS;
    });
    return settled == CUDA_SUCCESS ? wait(cuStreamQuery(stream)) : settled;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
    return in_context([&](CUctx_st&) {
        if (stream == nullptr || stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        stream->capture = std::make_unique<CUgraph_st>();
        return CUDA_SUCCESS;
    });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
    return in_context([&](CUctx_st& context) {
        const bool capturing = resolve(context, stream).capture != nullptr;
        *status = capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
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

}  // extern "C"
