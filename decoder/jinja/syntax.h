// A template that was read: its statements and their expressions. Knows no values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace hone::decoder::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
    enum class Kind : std::uint8_t {
        constant,
        text,
        name,
        list,
        tuple,
        dict,       ///< parts: key, value, key, value, ...
        attribute,  ///< parts[0].text
        element,    ///< parts[0][parts[1]]
        slice,      ///< parts[0][parts[1]:parts[2]:parts[3]], where those may be missing
        call,       ///< parts[0](parts[1], ...)
        filter,     ///< parts[0] | text(parts[1], ...); the first filter of a block has no parts[0]
        test,       ///< parts[0] is text(parts[1], ...)
        negative,
        positive,
        inverse,     ///< not
        all,         ///< and
        any,         ///< or
        choice,      ///< parts[0] if parts[1] else parts[2], which may be missing
        comparison,  ///< parts[0] words[0] parts[1] words[1] parts[2] ...
        chain,       ///< the same of + and -, or of *, /, // and %
        power,
        join,  ///< ~
    };
    Kind kind{};
    int line = 0;
    int depth = 1;  ///< nodes one in the other
    std::string text{};
    std::variant<std::monostate, bool, std::int64_t, double> constant{};  ///< the first is none
    std::vector<ExpressionPtr> parts{};
    std::vector<std::string>
        words{};  ///< signs between parts; of arguments the last ones' names, "*" and "**"
};

/// What is assigned to: a name, an attribute of a namespace, or several.
struct Target {
    std::string name{};
    std::string attribute{};
    std::vector<Target> parts{};
};

struct Parameter {
    std::string name{};
    ExpressionPtr otherwise{};
};

struct Statement;
using Statements = std::vector<Statement>;

struct Branch;

struct Statement {
    enum class Kind : std::uint8_t {
        data,
        output,
        set,        ///< target = value
        set_block,  ///< target = what the body writes, through the filters `value` where there are any
        loop,       ///< for target in value if test
        choice,     ///< if
        macro,
        call,          ///< value, with the body as caller()
        filter_block,  ///< value
        with,          ///< targets = values
        scope,
        leave_loop,
        next_round,
    };
    Kind kind{};
    int line = 0;
    std::string text{};  ///< data; a macro's name
    ExpressionPtr value{};
    ExpressionPtr test{};
    Target target{};
    bool recursive = false;
    Statements body{};
    Statements otherwise{};
    std::vector<Branch> branches{};       ///< of a choice; `otherwise` is what no condition has
    std::vector<Parameter> parameters{};  ///< of a macro and a call's body; what `with` sets
};

struct Branch {
    ExpressionPtr condition{};
    Statements body{};
};

}  // namespace hone::decoder::jinja
