#include <cuda.h>

#include <map>

namespace {

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

}  // namespace

extern "C" {

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

}  // extern "C"
