// What a template's expressions come to. A value owns nothing: what it refers to lives in the Memory of the
// text that is being made, in the template, or in what the text is made from. Lists and objects never change,
// as in Jinja's immutable sandbox; namespaces do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hone::decoder::jinja {

struct List;
struct Dict;
struct Space;
struct Loop;
struct Function;

struct Undefined {
    std::string_view why{};  ///< "'x' is undefined"
};
struct None {};
struct Text {
    std::string_view text{};
    bool is_safe = false;  ///< what the filter `safe` gave: adding to it would escape the other
};

using Value = std::variant<Undefined, None, bool, std::int64_t, double, Text, const List*, const Dict*,
                           Space*, const Loop*, const Function*>;

struct List {
    enum class Sort : std::uint8_t {
        list,
        tuple,
        range,
        view,  ///< of an object: no places in it
        once,  ///< what a filter gives: read once, and no length
    };
    std::vector<Value> items{};
    Sort sort{};
    int depth = 1;               ///< lists and objects one in the other
    mutable bool spent = false;  ///< of `once`
};

struct Dict {
    std::vector<std::pair<Value, Value>> entries{};
    int depth = 1;
};

/// namespace().
struct Space {
    std::vector<std::pair<std::string_view, Value>> entries{};
};

struct Statement;
struct Scope;

/// What `loop` is.
struct Loop {
    std::vector<Value> items{};
    std::size_t index = 0;
    int depth = 1;
    const Statement* statement = nullptr;
    Scope* scope = nullptr;                            ///< around the loop
    mutable std::optional<std::vector<Value>> seen{};  ///< by changed()
};

struct Function {
    enum class Sort : std::uint8_t {
        builtin,
        method,  ///< of `self`
        macro,   ///< a macro's statement, or the body of a call
    };
    Sort sort{};
    std::string_view name{};
    Value self{};
    const Statement* statement = nullptr;
    Scope* scope = nullptr;  ///< around the macro
};

struct Arguments {
    std::vector<Value> values{};
    std::vector<std::pair<std::string_view, Value>> named{};
};

template <class Kind>
[[nodiscard]] bool is(const Value& value) {
    return std::holds_alternative<Kind>(value);
}
[[nodiscard]] inline Value text_value(std::string_view text) { return Text{text}; }

[[nodiscard]] bool truth(const Value& value);
/// What Python calls its type: "str", "dict".
[[nodiscard]] const char* type_name(const Value& value);

}  // namespace hone::decoder::jinja
