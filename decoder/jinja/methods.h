// The methods of Python's types that templates call. Throw Fault for those that are not known here.
#pragma once

#include <string_view>

#include "decoder/jinja/memory.h"
#include "decoder/jinja/value.h"

namespace hone::decoder::jinja {

[[nodiscard]] Value text_method(Memory& memory, std::string_view text, std::string_view name,
                                const Arguments& arguments);
[[nodiscard]] Value list_method(Memory& memory, const List& list, std::string_view name,
                                const Arguments& arguments);
[[nodiscard]] Value dict_method(Memory& memory, const Dict& dict, std::string_view name,
                                const Arguments& arguments);
[[nodiscard]] Value loop_method(Memory& memory, const Loop& loop, std::string_view name,
                                const Arguments& arguments);

/// replace(), `most` times, or always where that is negative.
[[nodiscard]] Value replaced_text(Memory& memory, std::string_view text, std::string_view from,
                                  std::string_view to, std::int64_t most);

}  // namespace hone::decoder::jinja
