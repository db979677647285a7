// Values as text: as a template writes them, as Python spells them, and as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "decoder/jinja/memory.h"
#include "decoder/jinja/value.h"

namespace hone::decoder::jinja {

/// str(). Throw Fault for what has a form in Python that no template means: a generator, a function.
[[nodiscard]] std::string_view text_of(Memory& memory, const Value& value);
/// repr().
[[nodiscard]] std::string form_of(Memory& memory, const Value& value);
/// format % values: %s, %d, %r and %%.
[[nodiscard]] std::string percent_form(Memory& memory, std::string_view format,
                                       const std::vector<Value>& values);

struct JsonForm {
    std::string item_separator = ", ";
    std::string key_separator = ": ";
    int indent = -1;  ///< -1: all in one line
    bool ascii = false;
    bool sorted = false;
};
/// json.dumps().
[[nodiscard]] std::string json_of(Memory& memory, const Value& value, const JsonForm& form);

}  // namespace hone::decoder::jinja
