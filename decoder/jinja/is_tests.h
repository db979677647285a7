// Jinja's tests, what stands behind `is`.
#pragma once

#include <string_view>

#include "decoder/jinja/memory.h"
#include "decoder/jinja/value.h"

namespace hone::decoder::jinja {

[[nodiscard]] bool is_test(std::string_view name);
[[nodiscard]] bool apply_test(Memory& memory, std::string_view name, const Value& value,
                              const Arguments& arguments);

}  // namespace hone::decoder::jinja
