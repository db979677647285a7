// Which requests are refused before their bodies are read: where it is not clear where a body ends, a proxy
// in front may see other requests than we do. Pure functions.
#pragma once

#include <httplib.h>

#include <cstddef>

#include "decoder/http/request_form.h"

namespace hone::decoder {

/// A body that is too long is read on up to so many times what is allowed, so that the client sees why.
inline constexpr std::size_t body_patience = 4;

[[nodiscard]] bool has_body(const httplib::Request& request);
/// The status by which a request is refused; 0: it is not.
[[nodiscard]] int refusal(const httplib::Request& request, const RequestForm& form,
                          std::size_t max_body_bytes);

}  // namespace hone::decoder
