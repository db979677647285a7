#include "runtime/dispatch/public_error.h"

#include <fmt/format.h>

#include <new>
#include <stdexcept>

#include "cache/error.h"
#include "runtime/compile/image_provider.h"

namespace hone::runtime {
namespace {

bool means_no_gpu(CUresult result) {
    return result == CUDA_ERROR_NO_DEVICE || result == CUDA_ERROR_INVALID_DEVICE ||
           result == CUDA_ERROR_STUB_LIBRARY || result == CUDA_ERROR_DEVICE_UNAVAILABLE ||
           result == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH || result == CUDA_ERROR_SYSTEM_NOT_READY;
}

std::string cuda_hint(const CudaError& error) {
    if (error.sticky()) return "the device's context is unusable after this error; restart the process";
    if (error.result() == CUDA_ERROR_OUT_OF_MEMORY) return "free device memory";
    if (means_no_gpu(error.result()))
        return "`nvidia-smi` shows the GPUs of this machine, `hone doctor` what Hone sees";
    return "`hone doctor` checks driver, NVRTC and GPU";
}

}  // namespace

void throw_not_prepared(const std::string& where) {
    throw Error(std::string(describe(Status::not_prepared)), where, "keep what Runtime::prepare() returned",
                ErrorKind::bad_argument);
}

void rethrow_as_error(const std::string& where) {
    try {
        throw;
    } catch (const Error&) {
        throw;
    } catch (const FrozenError& error) {
        throw Error(error.what(), where,
                    "prepare before freeze(), or fill the cache with `hone tune` or `hone compile`",
                    ErrorKind::frozen);
    } catch (const CompilerMissing& error) {
        throw Error(error.what(), where, error.hint(), ErrorKind::compile_failed);
    } catch (const LibraryError& error) {
        throw Error(error.what(), where, error.hint(), ErrorKind::no_gpu);
    } catch (const NvrtcError& error) {
        throw Error(
            fmt::format("{}\n{}", error.what(), error.log()), where,
            "`hone doctor` says which NVRTC is used; one that fits the toolkit Hone was built with may help",
            ErrorKind::compile_failed);
    } catch (const CudaError& error) {
        throw Error(error.what(), where, cuda_hint(error),
                    means_no_gpu(error.result()) ? ErrorKind::no_gpu : ErrorKind::failed);
    } catch (const cache::CacheError& error) {
        throw Error(error.what(), where, error.hint());
    } catch (const std::invalid_argument& error) {
        throw Error(error.what(), where, "", ErrorKind::bad_argument);
    } catch (const std::bad_alloc&) {
        throw Error("out of host memory", where, "free host memory");
    } catch (const std::exception& error) {
        throw Error(error.what(), where, "");
    }
}

}  // namespace hone::runtime
