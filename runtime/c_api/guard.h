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
/// memory is replaced by one that says so.
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

}  // namespace hone::c_api
