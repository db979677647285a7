// What the values of options are called, in --help, in completion and on the man page. A name of the form
// "quick|standard" lists all that there are; a positional option named as its type has none of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hone::cli {

inline constexpr const char* operator_type = "OPERATOR";  ///< a public operator, or a family
inline constexpr const char* model_type = "MODEL";        ///< a known model, or a config.json
inline constexpr const char* file_type = "FILE";          ///< a file or a folder
inline constexpr const char* dtype_type = "fp32|fp16|bf16";

/// "a|b|c"
[[nodiscard]] std::string one_of(std::span<const std::string_view> names);
/// The architectures that Hone compiles for.
[[nodiscard]] std::string arch_type();

}  // namespace hone::cli
