// Rules for the numbers of a call, written once for run(), which wants a status, and refusal(), which wants
// words: a rule calls `refuse(status, name, value, allowed, numbers...)` for the first number that is wrong.
#pragma once

#include <fmt/format.h>

#include <string>
#include <type_traits>

#include "hone/error.h"

namespace hone::runtime {

/// The status alone: nothing else is evaluated.
struct JustStatus {
    template <class... Words>
    constexpr Status operator()(Status status, const Words&...) const noexcept {
        return status;
    }
};

/// "batch is 65; allowed: 0 to 64". The text is as it was where nothing is wrong.
struct InWords {
    std::string& text;

    template <class Value, class... Numbers>
    Status operator()(Status status, const char* name, Value value,
                      fmt::format_string<const std::type_identity_t<Numbers>&...> allowed,
                      const Numbers&... numbers) const {
        text = fmt::format("{} is {}; allowed: ", name, value) + fmt::format(allowed, numbers...);
        return status;
    }
};

}  // namespace hone::runtime
