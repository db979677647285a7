// What the runtime tells about its choices, as JSON: one shape for the C interface and for `hone explain`.
// docs/json-output.md lists the members. Internal: nlohmann-json is no part of the public headers.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "hone/report.h"

namespace hone::runtime {

[[nodiscard]] nlohmann::ordered_json as_json(const PrepareReport& report);
[[nodiscard]] nlohmann::ordered_json as_json(const Explanation& explanation);

/// For programs (one line of JSON) or for people (to_string).
template <class Told>
[[nodiscard]] std::string to_text(const Told& told, bool json) {
    return json ? as_json(told).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
                : to_string(told);
}

}  // namespace hone::runtime
