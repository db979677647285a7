#include "decoder/jinja/value.h"

namespace hone::decoder::jinja {

bool truth(const Value& value) {
    if (is<Undefined>(value) || is<None>(value)) return false;
    if (const auto* boolean = std::get_if<bool>(&value)) return *boolean;
    if (const auto* number = std::get_if<std::int64_t>(&value)) return *number != 0;
    if (const auto* number = std::get_if<double>(&value)) return *number != 0;
    if (const auto* text = std::get_if<Text>(&value)) return !text->text.empty();
    if (const auto* list = std::get_if<const List*>(&value))
        return (*list)->sort == List::Sort::once || !(*list)->items.empty();
    if (const auto* dict = std::get_if<const Dict*>(&value)) return !(*dict)->entries.empty();
    return true;
}

const char* type_name(const Value& value) {
    static constexpr const char* names[] = {"Undefined", "None", "bool",      "int",         "float",   "str",
                                            "list",      "dict", "Namespace", "LoopContext", "function"};
    static constexpr const char* lists[] = {"list", "tuple", "range", "view of an object", "generator"};
    if (const auto* list = std::get_if<const List*>(&value))
        return lists[static_cast<std::size_t>((*list)->sort)];
    return names[value.index()];
}

}  // namespace hone::decoder::jinja
