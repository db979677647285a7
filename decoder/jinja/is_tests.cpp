#include "decoder/jinja/is_tests.h"

#include <fmt/format.h>

#include <unordered_map>

#include "decoder/jinja/arguments.h"
#include "decoder/jinja/fault.h"
#include "decoder/jinja/filters.h"
#include "decoder/jinja/operators.h"
#include "decoder/jinja/python_text.h"
#include "decoder/jinja/text_form.h"

namespace hone::decoder::jinja {
namespace {

std::int64_t number_of(const Value& value) {
    require_defined(value);
    const auto number = whole(value);
    if (!number) throw Fault(fmt::format("a {} where a whole number is needed", type_name(value)));
    return *number;
}

bool is_number(const Value& value) { return real(value).has_value(); }
bool has_items(const Value& value) {
    return is<Undefined>(value) || is<Text>(value) || is<const List*>(value) || is<const Dict*>(value);
}
bool has_places(const Value& value) {
    const auto* list = std::get_if<const List*>(&value);
    return has_items(value) && (list == nullptr || (*list)->sort < List::Sort::view);
}

/// Of texts and numbers what Python's `is` says of two that came from different places is not defined.
bool is_same(Memory& memory, const Value& a, const Value& b) {
    if (a.index() != b.index()) return false;
    if (const auto* list = std::get_if<const List*>(&a)) return *list == std::get<const List*>(b);
    if (const auto* dict = std::get_if<const Dict*>(&a)) return *dict == std::get<const Dict*>(b);
    return equal(memory, a, b);
}

using Test = bool (*)(Memory&, const Value&);
using TestWith = bool (*)(Memory&, const Value&, const Value& other);

template <char sign, bool or_equal>
bool compares(Memory& memory, const Value& value, const Value& other) {
    const char name[] = {sign, or_equal ? '=' : '\0', '\0'};
    return compare(memory, name, value, other);
}

const std::unordered_map<std::string_view, Test>& tests() {
    static const std::unordered_map<std::string_view, Test> known{
        {"defined", [](Memory&, const Value& v) { return !is<Undefined>(v); }},
        {"undefined", [](Memory&, const Value& v) { return is<Undefined>(v); }},
        {"none", [](Memory&, const Value& v) { return is<None>(v); }},
        {"boolean", [](Memory&, const Value& v) { return is<bool>(v); }},
        {"true", [](Memory&, const Value& v) { return is<bool>(v) && std::get<bool>(v); }},
        {"false", [](Memory&, const Value& v) { return is<bool>(v) && !std::get<bool>(v); }},
        {"integer", [](Memory&, const Value& v) { return is<std::int64_t>(v); }},
        {"float", [](Memory&, const Value& v) { return is<double>(v); }},
        {"number", [](Memory&, const Value& v) { return is_number(v); }},
        {"string", [](Memory&, const Value& v) { return is<Text>(v); }},
        {"mapping", [](Memory&, const Value& v) { return is<const Dict*>(v); }},
        {"iterable", [](Memory&, const Value& v) { return has_items(v) || is<const Loop*>(v); }},
        {"sequence", [](Memory&, const Value& v) { return has_places(v); }},
        {"callable", [](Memory&, const Value& v) { return is<const Function*>(v) || is<Undefined>(v); }},
        {"escaped", [](Memory&, const Value& v) { return is<Text>(v) && std::get<Text>(v).is_safe; }},
        {"odd", [](Memory&, const Value& v) { return number_of(v) % 2 != 0; }},
        {"even", [](Memory&, const Value& v) { return number_of(v) % 2 == 0; }},
        {"upper", [](Memory& memory, const Value& v) { return is_all(text_of(memory, v), "isupper"); }},
        {"lower", [](Memory& memory, const Value& v) { return is_all(text_of(memory, v), "islower"); }},
        {"filter", [](Memory& memory, const Value& v) { return is_filter(text_of(memory, v)); }},
        {"test", [](Memory& memory, const Value& v) { return is_test(text_of(memory, v)); }},
    };
    return known;
}

const std::unordered_map<std::string_view, TestWith>& tests_with_other() {
    static const std::unordered_map<std::string_view, TestWith> known{
        {"divisibleby",
         [](Memory& memory, const Value& v, const Value& other) {
             return equal(memory, compute(memory, "%", v, other), std::int64_t{0});
         }},
        {"sameas", is_same},
        {"in", [](Memory& memory, const Value& v, const Value& other) { return contains(memory, other, v); }},
        {"eq", compares<'=', true>},
        {"==", compares<'=', true>},
        {"equalto", compares<'=', true>},
        {"ne", compares<'!', true>},
        {"!=", compares<'!', true>},
        {"lt", compares<'<', false>},
        {"<", compares<'<', false>},
        {"lessthan", compares<'<', false>},
        {"le", compares<'<', true>},
        {"<=", compares<'<', true>},
        {"gt", compares<'>', false>},
        {">", compares<'>', false>},
        {"greaterthan", compares<'>', false>},
        {"ge", compares<'>', true>},
        {">=", compares<'>', true>},
    };
    return known;
}

}  // namespace

bool is_test(std::string_view name) { return tests().contains(name) || tests_with_other().contains(name); }

bool apply_test(Memory& memory, std::string_view name, const Value& value, const Arguments& arguments) {
    memory.step();
    if (const auto test = tests().find(name); test != tests().end()) {
        static_cast<void>(Bound(name, arguments, {}));
        return test->second(memory, value);
    }
    const auto test = tests_with_other().find(name);
    if (test == tests_with_other().end()) throw Fault(fmt::format("there is no test {:?}", name));
    return test->second(memory, value, Bound(name, arguments, {"other"}).need(0));
}

}  // namespace hone::decoder::jinja
