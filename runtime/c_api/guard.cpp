#include "runtime/c_api/guard.h"

#include <string>

#include <fmt/format.h>

namespace hone::c_api {
namespace {

std::string& last_error() noexcept {
    thread_local std::string text;
    return text;
}

hone_status status_of(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::bad_argument: return HONE_BAD_ARGUMENT;
        case ErrorKind::no_gpu: return HONE_NO_GPU;
        case ErrorKind::compile_failed: return HONE_COMPILE_FAILED;
        case ErrorKind::frozen: return HONE_FROZEN;
        case ErrorKind::failed: break;
    }
    return HONE_FAILED;
}

}  // namespace

hone_status fail(hone_status status, std::string_view text) noexcept {
    try {
        last_error() = text.empty() ? hone_status_string(status) : text;
    } catch (...) {
        last_error().clear();
    }
    return status;
}

hone_status fail_with_current_exception(std::string_view where) noexcept {
    try {
        try {
            throw;
        } catch (const Error& error) {
            const std::string hint = error.hint().empty() ? std::string() : '\n' + error.hint();
            return fail(status_of(error.kind()), fmt::format("{}: {}{}", where, error.what(), hint));
        } catch (const std::bad_alloc&) {
            return fail(HONE_OUT_OF_MEMORY);
        } catch (const std::exception& error) {
            return fail(HONE_FAILED, fmt::format("{}: {}", where, error.what()));
        } catch (...) {
            return fail(HONE_FAILED);
        }
    } catch (...) {
        return fail(HONE_OUT_OF_MEMORY);
    }
}

}  // namespace hone::c_api

const char* hone_last_error(void) { return hone::c_api::last_error().c_str(); }

const char* hone_status_string(hone_status status) {
    switch (status) {
        case HONE_OK: return "ok";
        case HONE_BAD_ROWS:
            return "the number of rows, or a size of the call, is negative or above the prepared maximum";
        case HONE_NULL_POINTER: return "a tensor that this operator needs is a null pointer";
        case HONE_MISALIGNED:
            return "a pointer or row stride is not a multiple of the kernel's access width; 16 bytes always "
                   "are";
        case HONE_BAD_STRIDE:
            return "a row stride is smaller than a row, or those of k and v differ in a call that needs them "
                   "alike";
        case HONE_BAD_EPSILON: return "epsilon is negative, infinite or no number";
        case HONE_BAD_SCALE: return "scale is infinite or no number, or softcap is not above 0";
        case HONE_BAD_LENGTHS:
            return "a length or position is negative or beyond what there is room for, or starts decrease";
        case HONE_BAD_PAGES: return "the cache has no pages, or a page or slot is not within it";
        case HONE_CAPTURING: return "indices cannot be checked while the stream is captured";
        case HONE_BAD_HANDLE: return "a handle is null, or of another operator than the function's";
        case HONE_BAD_STRUCT:
            return "struct_size is not one that this library knows, or a field that it does not know is set: "
                   "start from the header's _INIT macro";
        case HONE_FORKED: return "the handle was made before fork(): a child must make its own";
        case HONE_LAUNCH_FAILED: return "the driver refused the launch";
        case HONE_BAD_ARGUMENT: return "a size, dtype or option that the operator does not take";
        case HONE_NO_GPU: return "no driver, too old a driver, or no such device";
        case HONE_COMPILE_FAILED: return "NVRTC is missing or refused the kernel";
        case HONE_FROZEN: return "a compile was needed that is not allowed";
        case HONE_OUT_OF_MEMORY: return "out of host memory";
        case HONE_FAILED: return "failed";
    }
    return "unknown status";
}
