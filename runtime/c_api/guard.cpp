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
