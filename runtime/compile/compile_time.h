// About how long a template takes to compile, for whoever plans ahead or begins the longest first. Any
// thread.
#pragma once

#include <chrono>
#include <string_view>

namespace hone::runtime {

/// On a core of a server whose other cores compile, too; zero for a template that this build does not have.
[[nodiscard]] std::chrono::microseconds compile_time(std::string_view source);

}  // namespace hone::runtime
