// Texts as a page carries them: deflated (RFC 1950) and in base64 (RFC 4648), so that nothing of them is
// HTML.
#pragma once

#include <string>
#include <string_view>

namespace hone::tuner {

[[nodiscard]] std::string base64(std::string_view bytes);
/// Throws std::bad_alloc where memory ends.
[[nodiscard]] std::string packed(std::string_view text);

}  // namespace hone::tuner
