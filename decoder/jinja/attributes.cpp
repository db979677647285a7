#include "decoder/jinja/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "decoder/jinja/fault.h"
#include "decoder/jinja/methods.h"
#include "decoder/jinja/operators.h"

namespace hone::decoder::jinja {
namespace {

using Names = std::span<const std::string_view>;

/// What Python's types have, known here or not: an object's own key of that name does not count behind a dot.
bool has_method(const Value& value, std::string_view name) {
    static constexpr std::string_view text[] = {
        "capitalize", "casefold",     "center",       "count",   "encode",     "endswith",    "expandtabs",
        "find",       "format",       "format_map",   "index",   "isalnum",    "isalpha",     "isascii",
        "isdecimal",  "isdigit",      "isidentifier", "islower", "isnumeric",  "isprintable", "isspace",
        "istitle",    "isupper",      "join",         "ljust",   "lower",      "lstrip",      "maketrans",
        "partition",  "removeprefix", "removesuffix", "replace", "rfind",      "rindex",      "rjust",
        "rpartition", "rsplit",       "rstrip",       "split",   "splitlines", "startswith",  "strip",
        "swapcase",   "title",        "translate",    "upper",   "zfill"};
    static constexpr std::string_view list[] = {"append", "clear", "copy",   "count",   "extend", "index",
                                                "insert", "pop",   "remove", "reverse", "sort"};
    static constexpr std::string_view dict[] = {"clear", "copy",    "fromkeys",   "get",    "items", "keys",
                                                "pop",   "popitem", "setdefault", "update", "values"};
    static constexpr std::string_view loop[] = {"changed", "cycle"};
    const auto among = [name](Names names) { return std::ranges::find(names, name) != names.end(); };
    if (is<Text>(value)) return among(text);
    if (const auto* known = std::get_if<const List*>(&value))
        return (*known)->sort < List::Sort::range && among(list);
    if (is<const Dict*>(value)) return among(dict);
    return is<const Loop*>(value) && among(loop);
}

Value loop_attribute(const Loop& loop, std::string_view name) {
    const auto index = static_cast<std::int64_t>(loop.index);
    const std::int64_t count = std::ssize(loop.items);
    const auto item = [&](bool exists, std::int64_t at) {
        return exists ? loop.items[static_cast<std::size_t>(at)]
                      : Value(Undefined{"there is no such item of the loop"});
    };
    if (name == "index") return index + 1;
    if (name == "index0") return index;
    if (name == "revindex") return count - index;
    if (name == "revindex0") return count - index - 1;
    if (name == "first") return index == 0;
    if (name == "last") return index + 1 == count;
    if (name == "length") return count;
    if (name == "depth") return std::int64_t{loop.depth};
    if (name == "depth0") return std::int64_t{loop.depth} - 1;
    if (name == "previtem") return item(index > 0, index - 1);
    if (name == "nextitem") return item(index + 1 < count, index + 1);
    return Undefined{};
}

Value no_attribute(Memory& memory, const Value& value, std::string_view name) {
    return Undefined{memory.keep(fmt::format("'{}{}' has no attribute '{}'", type_name(value),
                                             is<None>(value) ? "" : " object", name))};
}

bool is_unsafe(std::string_view name) { return name.starts_with('_'); }

}  // namespace

Value method_of(Memory& memory, const Value& value, std::string_view name) {
    require_defined(value);
    if (has_method(value, name))
        return memory.function({.sort = Function::Sort::method, .name = name, .self = value});
    return no_attribute(memory, value, name);
}

Value attribute_of(Memory& memory, const Value& value, std::string_view name) {
    require_defined(value);
    if (has_method(value, name)) return method_of(memory, value, name);
    if (const auto* dict = std::get_if<const Dict*>(&value)) {
        const Value* const found = find(memory, **dict, text_value(name));
        return found != nullptr ? *found : no_attribute(memory, value, name);
    }
    if (is_unsafe(name)) return no_attribute(memory, value, name);
    if (const auto* space = std::get_if<Space*>(&value)) {
        if (const Value* const found = find(memory, **space, name)) return *found;
    }
    if (const auto* loop = std::get_if<const Loop*>(&value)) {
        Value found = loop_attribute(**loop, name);
        if (!is<Undefined>(found) || !std::get<Undefined>(found).why.empty()) return found;
    }
    return no_attribute(memory, value, name);
}

Value item_of(Memory& memory, const Value& value, const Value& index) {
    require_defined(value);
    const auto* name = std::get_if<Text>(&index);
    if (name == nullptr) return element(memory, value, index);
    if (const auto* dict = std::get_if<const Dict*>(&value)) {
        const Value* const found = find(memory, **dict, index);
        return found != nullptr ? *found : method_of(memory, value, name->text);
    }
    return attribute_of(memory, value, name->text);
}

Value call_method(Memory& memory, const Value& self, std::string_view name, const Arguments& arguments) {
    if (const auto* text = std::get_if<Text>(&self)) {
        if (text->is_safe) throw Fault(fmt::format("the method {} of a text of the filter \"safe\"", name));
        return text_method(memory, text->text, name, arguments);
    }
    if (const auto* list = std::get_if<const List*>(&self))
        return list_method(memory, **list, name, arguments);
    if (const auto* dict = std::get_if<const Dict*>(&self))
        return dict_method(memory, **dict, name, arguments);
    return loop_method(memory, *std::get<const Loop*>(self), name, arguments);
}

}  // namespace hone::decoder::jinja
