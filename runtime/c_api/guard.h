// What every C function does at its border: catch, remember the text for hone_last_error(), return a status.
// Internal to the C interface.
#pragma once

#include <new>
#include <string_view>
#include <utility>

#include "hone/error.h"
#include "runtime/hone.h"

namespace hone::c_api {

/// Remembers the text for this thread and returns `status`. Never throws: a text that does not fit into
/// memory is left out.
hone_status fail(hone_status status, std::string_view text = {}) noexcept;
/// The same, for the exception that is being handled. `where` is the C function.
hone_status fail_with_current_exception(std::string_view where) noexcept;

/// Runs `body`, which returns a hone_status; what it throws becomes one.
template <class Body>
hone_status guarded(std::string_view where, Body&& body) noexcept {
    try {
        return std::forward<Body>(body)();
    } catch (...) {
        return fail_with_current_exception(where);
    }
}

/// The status of run(), with what the driver said when it refused; `launch_error` is asked only then.
template <class LaunchError>
hone_status run_status(Status status, LaunchError&& launch_error) noexcept {
    switch (status) {
        case Status::ok: return HONE_OK;
        case Status::bad_rows: return fail(HONE_BAD_ROWS);
        case Status::null_pointer: return fail(HONE_NULL_POINTER);
        case Status::misaligned: return fail(HONE_MISALIGNED);
        case Status::bad_stride: return fail(HONE_BAD_STRIDE);
        case Status::bad_epsilon: return fail(HONE_BAD_EPSILON);
        case Status::not_prepared: return fail(HONE_BAD_HANDLE);
        case Status::bad_scale: return fail(HONE_BAD_SCALE);
        case Status::bad_lengths: return fail(HONE_BAD_LENGTHS);
        case Status::bad_pages: return fail(HONE_BAD_PAGES);
        case Status::capturing: return fail(HONE_CAPTURING);
        case Status::launch_failed: break;
    }
    return guarded("run", [&] { return fail(HONE_LAUNCH_FAILED, launch_error()); });
}

}  // namespace hone::c_api
