// The one place where the exceptions of the layers below become hone::Error.
#pragma once

#include <string>
#include <utility>

#include "hone/error.h"

namespace hone::runtime {

/// Call inside a catch block: throws the current exception as hone::Error, with `where` as its place.
[[noreturn]] void rethrow_as_error(const std::string& where);

/// For a kernel object that no prepare() made.
[[noreturn]] void throw_not_prepared(const std::string& where);

/// Runs `body`; whatever it throws leaves as hone::Error.
template <class Body>
decltype(auto) guarded(const std::string& where, Body&& body) {
    try {
        return std::forward<Body>(body)();
    } catch (...) {
        rethrow_as_error(where);
    }
}

}  // namespace hone::runtime
