// What stands behind a dot and between brackets, and the methods of texts, lists and objects.
#pragma once

#include <string_view>

#include "decoder/jinja/memory.h"
#include "decoder/jinja/value.h"

namespace hone::decoder::jinja {

// An undefined value where there is none. Throw Fault for an undefined `value`.
/// value.name: a method, or what an object has behind that key.
[[nodiscard]] Value attribute_of(Memory& memory, const Value& value, std::string_view name);
/// value[index]: what stands there, else a method.
[[nodiscard]] Value item_of(Memory& memory, const Value& value, const Value& index);
/// A method of `value` alone.
[[nodiscard]] Value method_of(Memory& memory, const Value& value, std::string_view name);

[[nodiscard]] Value call_method(Memory& memory, const Value& self, std::string_view name,
                                const Arguments& arguments);

}  // namespace hone::decoder::jinja
