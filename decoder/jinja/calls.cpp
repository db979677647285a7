// What the renderer calls: macros, and the functions that a template finds.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "decoder/jinja/arguments.h"
#include "decoder/jinja/attributes.h"
#include "decoder/jinja/fault.h"
#include "decoder/jinja/limits.h"
#include "decoder/jinja/operators.h"
#include "decoder/jinja/renderer.h"
#include "decoder/jinja/text_form.h"

namespace hone::decoder::jinja {

Value Renderer::call(const Value& callee, const Arguments& arguments) {
    require_defined(callee);
    if (const auto* loop = std::get_if<const Loop*>(&callee)) {
        const Statement& statement = *(*loop)->statement;
        if (!statement.recursive) throw Fault("loop() of a loop that is not recursive");
        return captured([&] {
            run_loop(statement, Bound("loop", arguments, {"over"}).need(0), (*loop)->scope,
                     (*loop)->depth + 1);
        });
    }
    const auto* known = std::get_if<const Function*>(&callee);
    if (known == nullptr) throw Fault(fmt::format("a call of a {}", type_name(callee)));
    const Function& function = **known;
    if (function.sort == Function::Sort::macro) return call_macro(function, arguments);
    if (function.sort == Function::Sort::method)
        return call_method(memory_, function.self, function.name, arguments);
    return call_builtin(function.name, arguments);
}

Value Renderer::call_macro(const Function& macro, const Arguments& arguments) {
    const std::vector<Parameter>& parameters = macro.statement->parameters;
    if (arguments.values.size() > parameters.size())
        throw Fault(fmt::format("macro {:?} takes up to {} arguments", macro.name, parameters.size()));
    const Inside inside(*this, macro.scope);
    set_name("caller", Undefined{"No caller defined"});
    memory_.step(parameters.size() * arguments.named.size() * 2 * bytes_of_name);
    for (const auto& [name, value] : arguments.named) {
        const auto at = std::ranges::find(parameters, name, &Parameter::name) - parameters.begin();
        if (name != "caller" && at >= std::ssize(parameters))
            throw Fault(fmt::format("macro {:?} takes no argument {:?}", macro.name, name));
        if (name != "caller" && at < std::ssize(arguments.values))
            throw Fault(fmt::format("macro {:?} has two values for {:?}", macro.name, name));
        set_name(name, value);
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const Parameter& parameter = parameters[i];
        const auto is_named = [&] {
            return std::ranges::any_of(arguments.named,
                                       [&](const auto& one) { return one.first == parameter.name; });
        };
        if (i < arguments.values.size())
            set_name(parameter.name, arguments.values[i]);
        else if (!is_named())
            set_name(parameter.name, parameter.otherwise
                                         ? evaluate(*parameter.otherwise)
                                         : Undefined{memory_.keep(fmt::format(
                                               "parameter '{}' was not provided", parameter.name))});
    }
    return captured([&] { run_inside(macro.statement->body); });
}

void Renderer::call_with_body(const Statement& statement) {
    keep_scopes();
    const Value callee = evaluate(*statement.value->parts[0]);
    Arguments arguments = arguments_of(*statement.value);
    arguments.named.emplace_back(
        "caller",
        memory_.function(
            {.sort = Function::Sort::macro, .name = "caller", .statement = &statement, .scope = scope_}));
    write(text_of(memory_, call(callee, arguments)));
}

Value Renderer::call_builtin(std::string_view name, const Arguments& arguments) {
    if (name == "range") return call_range(arguments);
    if (name == "namespace") return call_namespace(arguments);
    if (name == "dict") return call_dict(arguments);
    if (name == "strftime_now") return call_clock(arguments);
    std::string_view message = text_of(memory_, Bound(name, arguments, {"message"}).need(0));
    throw Refusal(std::string(message.substr(0, max_refusal_bytes)));
}

Value Renderer::call_range(const Arguments& arguments) {
    const Bound given("range", arguments, {"start", "stop", "step"});
    const bool has_start = given.at(1).has_value();
    const auto number = [&](std::size_t at) {
        const Value value = given.need(at);
        require_defined(value);
        const auto known = whole(value);
        if (!known) throw Fault(fmt::format("range of a {}", type_name(value)));
        return *known;
    };
    const std::int64_t begin = has_start ? number(0) : 0;
    const std::int64_t end = number(has_start ? 1 : 0);
    const std::int64_t step = given.at(2) ? number(2) : 1;
    if (step == 0) throw Fault("range with a step of 0");
    std::vector<Value> items;
    for (std::int64_t at = begin; step > 0 ? at < end : at > end;) {
        if (std::ssize(items) == max_range)
            throw Fault(fmt::format("range of more than {} numbers", max_range));
        items.emplace_back(at);
        if (__builtin_add_overflow(at, step, &at)) break;
    }
    return memory_.list(std::move(items), List::Sort::range);
}

Value Renderer::call_namespace(const Arguments& arguments) {
    std::vector<std::pair<std::string_view, Value>> entries;
    const Bound given("namespace", {.values = arguments.values}, {"values"});
    if (given.at(0)) {
        if (!is<const Dict*>(*given.at(0))) throw Fault("namespace of what is no object");
        for (const auto& [key, value] : std::get<const Dict*>(*given.at(0))->entries)
            entries.emplace_back(text_of(memory_, key), value);
    }
    for (const auto& [name, value] : arguments.named) entries.emplace_back(name, value);
    return memory_.space(std::move(entries));
}

Value Renderer::call_dict(const Arguments& arguments) {
    std::vector<std::pair<Value, Value>> entries;
    const Bound given("dict", {.values = arguments.values}, {"values"});
    if (given.at(0)) {
        if (const auto* dict = std::get_if<const Dict*>(&*given.at(0))) {
            entries = (*dict)->entries;
        } else {
            for (const Value& pair : items_of(memory_, *given.at(0))) {
                const std::vector<Value> both = items_of(memory_, pair);
                if (both.size() != 2) throw Fault("dict of what are no pairs");
                entries.emplace_back(both[0], both[1]);
            }
        }
    }
    for (const auto& [name, value] : arguments.named) entries.emplace_back(text_value(name), value);
    return memory_.dict(std::move(entries));
}

/// The time when the text is made, as strftime() has it.
Value Renderer::call_clock(const Arguments& arguments) {
    const std::string form(Bound("strftime_now", arguments, {"format"}).text(0));
    constexpr std::size_t longest = 100;
    if (form.size() > longest || form.find('\0') != std::string::npos)
        throw Fault(fmt::format("strftime_now of more than {} characters", longest));
    std::array<char, 64 * longest> text{};
    return memory_.text(
        std::string(text.data(), std::strftime(text.data(), text.size(), form.c_str(), &now_)));
}

}  // namespace hone::decoder::jinja
