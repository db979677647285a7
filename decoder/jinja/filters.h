// Jinja's filters, and tojson as transformers has it.
#pragma once

#include <string_view>

#include "decoder/jinja/memory.h"
#include "decoder/jinja/value.h"

namespace hone::decoder::jinja {

/// Whether Jinja has one of this name; some of those are refused when they are called.
[[nodiscard]] bool is_filter(std::string_view name);
[[nodiscard]] Value apply_filter(Memory& memory, std::string_view name, const Value& input,
                                 const Arguments& arguments);

}  // namespace hone::decoder::jinja
