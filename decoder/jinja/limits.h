// What a template may ask for: it is a file from the internet, and messages come from anyone. Each limit is
// far above what chat templates need, and reaching one is a refusal that names it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hone::decoder::jinja {

/// Bytes of a template.
inline constexpr std::size_t max_template_bytes = std::size_t{1} << 20;
/// Nodes of a template one in the other: brackets, statements, filters behind each other.
inline constexpr int max_nesting = 100;
/// Evaluations one in the other while a text is made, macros that call each other included: less than 1 MiB
/// of stack.
inline constexpr int max_depth = 800;
/// Lists and objects one in the other.
inline constexpr int max_value_depth = 100;
/// Evaluations of one text, and as many more for each value that it is given; 64 bytes that are looked at
/// count as one.
inline constexpr std::size_t max_steps = 5'000'000;
inline constexpr std::size_t steps_for_value = 200;
/// Bytes that looking past a name counts as.
inline constexpr std::size_t bytes_of_name = 8;
/// Bytes that values take while a text is made, and as many times the bytes of what it is given.
inline constexpr std::size_t max_bytes = std::size_t{64} << 20;
inline constexpr std::size_t bytes_for_byte = 32;
/// Numbers of a range(), as in Jinja's sandbox.
inline constexpr std::int64_t max_range = 100'000;
/// Bytes of a message that raise_exception() is called with.
inline constexpr std::size_t max_refusal_bytes = 1000;

}  // namespace hone::decoder::jinja
