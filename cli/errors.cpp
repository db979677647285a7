#include "cli/errors.h"

#include <fmt/format.h>

#include <new>
#include <system_error>

#include "cache/error.h"
#include "hone/error.h"
#include "runtime/cuda/driver.h"
#include "runtime/nvrtc/nvrtc.h"
#include "runtime/system/input_error.h"
#include "runtime/system/shared_library.h"
#include "runtime/system/write_error.h"
#include "tuner/errors.h"

namespace hone::cli {
namespace {

Outcome error(ExitCode exit, std::string code, std::string message, std::string hint = {}) {
    return {.exit = exit,
            .data = nullptr,
            .text = {},
            .error = ErrorInfo{std::move(code), std::move(message), std::move(hint)}};
}

std::string word(cache::CacheError::Kind kind) {
    using Kind = cache::CacheError::Kind;
    switch (kind) {
        case Kind::unusable: return "cache_unusable";
        case Kind::busy: return "cache_busy";
        case Kind::read_only: return "cache_read_only";
        case Kind::full: return "cache_full";
        case Kind::newer_schema: return "cache_newer_schema";
        case Kind::not_a_cache: return "not_a_cache";
        case Kind::damaged: return "cache_damaged";
        case Kind::unsafe_permissions: return "cache_unsafe_permissions";
    }
    return "cache_unusable";
}

}  // namespace

Outcome usage_error(std::string code, std::string message, std::string hint) {
    return error(ExitCode::usage, std::move(code), std::move(message), std::move(hint));
}

Outcome outcome_of(const std::exception_ptr& exception) {
    try {
        std::rethrow_exception(exception);
    } catch (const Failure& failure) {
        return {.exit = failure.exit(), .data = nullptr, .text = {}, .error = failure.info()};
    } catch (const runtime::InputError& bad) {
        return usage_error("bad_input", bad.what(), "");
    } catch (const runtime::WriteError& write) {
        return error(ExitCode::failure, write.disk_full() ? "disk_full" : "cannot_write", write.what(),
                     write.hint());
    } catch (const tuner::NoDeviceError& none) {
        return error(ExitCode::no_gpu, "no_gpu", none.what(), none.hint());
    } catch (const runtime::LibraryError& missing) {
        return error(ExitCode::no_gpu, "library_missing", missing.what(), missing.hint());
    } catch (const runtime::CudaError& cuda) {
        const bool is_none =
            cuda.result() == CUDA_ERROR_NO_DEVICE || cuda.result() == CUDA_ERROR_INVALID_DEVICE;
        return error(is_none ? ExitCode::no_gpu : ExitCode::failure, "cuda_error", cuda.what(),
                     "hone doctor checks driver and GPUs");
    } catch (const runtime::NvrtcError& compile) {
        return error(ExitCode::failure, "compile_failed", compile.what());
    } catch (const cache::CacheError& cache) {
        return error(ExitCode::cache_unusable, word(cache.kind()), cache.what(), cache.hint());
    } catch (const cache::BundleError& bundle) {
        return error(ExitCode::import_refused, "import_refused", bundle.what(), "nothing was imported");
    } catch (const hone::Error& dispatch) {
        return error(ExitCode::failure, "failure", dispatch.what(), dispatch.hint());
    } catch (const std::bad_alloc&) {
        return error(ExitCode::failure, "out_of_memory", "out of memory");
    } catch (const std::system_error& system) {
        if (system.code() != std::errc::resource_unavailable_try_again)
            return error(ExitCode::failure, "failure", system.what());
        return error(ExitCode::failure, "no_threads",
                     fmt::format("no thread can be started: {}", system.what()),
                     "allow more of them (ulimit -u), or more memory (ulimit -v)");
    } catch (const std::exception& other) {
        return error(ExitCode::failure, "failure", other.what());
    } catch (...) {
        return error(ExitCode::failure, "failure", "unknown error");
    }
}

}  // namespace hone::cli
