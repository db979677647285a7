// What every C function of the decoder does at its border. Internal to the C interface.
#pragma once

#include <new>
#include <string_view>
#include <utility>

#include "runtime/c_api/guard.h"
#include "runtime/dispatch/public_error.h"
#include "runtime/system/input_error.h"
#include "runtime/system/short_text.h"

namespace hone::decoder::c_api {

/// Throws the exception that is being handled as one that runtime/c_api knows the status of.
[[noreturn]] inline void rethrow() {
    try {
        throw;
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const runtime::InputError& bad) {
        throw Error(runtime::with_short_words(bad.what()), "", "", ErrorKind::bad_argument);
    } catch (...) {
        runtime::rethrow_as_error("");
    }
}

/// Runs `body`, which returns a hone_status; what it throws becomes one.
template <class Body>
hone_status guarded(std::string_view where, Body&& body) noexcept {
    return hone::c_api::guarded(where, [&] {
        try {
            return std::forward<Body>(body)();
        } catch (...) {
            rethrow();
        }
    });
}

}  // namespace hone::decoder::c_api
