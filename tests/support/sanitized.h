// Whether a sanitizer watches the program, under which everything takes several times as long.
#pragma once

namespace hone::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif

}  // namespace hone::test
