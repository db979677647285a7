#include "decoder/jinja/renderer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "decoder/jinja/attributes.h"
#include "decoder/jinja/fault.h"
#include "decoder/jinja/filters.h"
#include "decoder/jinja/is_tests.h"
#include "decoder/jinja/limits.h"
#include "decoder/jinja/operators.h"
#include "decoder/jinja/text_form.h"

namespace hone::decoder::jinja {
namespace {

using Json = nlohmann::ordered_json;

std::size_t count_values(const Json& json, int depth = 0) {
    std::size_t count = 1;
    if (depth < max_value_depth && json.is_structured())
        for (const Json& one : json) count += count_values(one, depth + 1);
    return count;
}

std::size_t count_bytes(const Json& json, int depth = 0) {
    if (const auto* text = json.get_ptr<const std::string*>()) return text->size();
    std::size_t bytes = sizeof(Json);
    if (depth < max_value_depth && json.is_structured())
        for (const auto& one : json.items()) bytes += one.key().size() + count_bytes(one.value(), depth + 1);
    return bytes;
}

}  // namespace

/// One level more, while it lives.
class Renderer::Deeper {
  public:
    explicit Deeper(Renderer& renderer) : renderer_(renderer) {
        if (renderer.depth_ >= max_depth)
            throw Fault(fmt::format("macros and statements are more than {} deep in each other", max_depth));
        ++renderer.depth_;
    }
    ~Deeper() { --renderer_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

  private:
    Renderer& renderer_;
};

Renderer::Renderer(const Json& variables, const std::tm& now)
    : memory_(count_values(variables), count_bytes(variables)), variables_(variables), now_(now) {}

std::string Renderer::run(const Statements& statements) {
    std::string text;
    out_ = &text;
    scope_ = &scopes_.emplace_back();
    for (const auto& variable : variables_.items()) set_name(variable.key(), value_of(variable.value(), 0));
    const Inside inside(*this, scope_);
    run_all(statements);
    return text;
}

Value Renderer::value_of(const Json& json, int depth) {
    if (depth > max_value_depth)
        throw Fault(
            fmt::format("a value with more than {} lists and objects in each other", max_value_depth));
    if (const auto* text = json.get_ptr<const std::string*>()) return text_value(*text);
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_number_float()) return json.get<double>();
    if (json.is_number_unsigned() && json.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
        throw Fault("a whole number of more than 64 bits");
    if (json.is_number()) return json.get<std::int64_t>();
    if (json.is_array()) {
        std::vector<Value> items;
        items.reserve(json.size());
        for (const Json& one : json) items.push_back(value_of(one, depth + 1));
        return memory_.list(std::move(items));
    }
    if (!json.is_object()) return None{};
    std::vector<std::pair<Value, Value>> entries;
    entries.reserve(json.size());
    for (const auto& one : json.items())
        entries.emplace_back(text_value(one.key()), value_of(one.value(), depth + 1));
    return memory_.dict(std::move(entries));
}

// Statements

void Renderer::write(std::string_view text) {
    memory_.step(text.size());
    memory_.take(text.size());
    *out_ += text;
}

Renderer::Flow Renderer::run_all(const Statements& statements) {
    const Deeper deeper(*this);
    for (const Statement& statement : statements)
        if (const Flow flow = execute(statement); flow != Flow::on) return flow;
    return Flow::on;
}

Renderer::Flow Renderer::execute(const Statement& statement) {
    using Kind = Statement::Kind;
    memory_.step();
    line_ = statement.line;
    switch (statement.kind) {
        case Kind::data: write(statement.text); break;
        case Kind::output: write(text_of(memory_, evaluate(*statement.value))); break;
        case Kind::set: set(statement.target, evaluate(*statement.value)); break;
        case Kind::set_block: set(statement.target, block_of(statement)); break;
        case Kind::loop: return run_loop(statement, evaluate(*statement.value), scope_, 1);
        case Kind::choice: return run_choice(statement);
        case Kind::macro:
            keep_scopes();
            set_name(statement.text, memory_.function({.sort = Function::Sort::macro,
                                                       .name = statement.text,
                                                       .statement = &statement,
                                                       .scope = scope_}));
            break;
        case Kind::call: call_with_body(statement); break;
        case Kind::filter_block: write(text_of(memory_, block_of(statement))); break;
        case Kind::with: return run_with(statement);
        case Kind::scope: return run_inside(statement.body);
        case Kind::leave_loop: return Flow::leave_loop;
        case Kind::next_round: return Flow::next_round;
    }
    return Flow::on;
}

Renderer::Flow Renderer::run_inside(const Statements& statements) {
    const Inside inside(*this, scope_);
    return run_all(statements);
}

Renderer::Flow Renderer::run_choice(const Statement& statement) {
    for (const Branch& branch : statement.branches)
        if (truth(evaluate(*branch.condition))) return run_all(branch.body);
    return run_all(statement.otherwise);
}

std::vector<Value> Renderer::looped_items(const Statement& statement, const Value& over) {
    std::vector<Value> items = items_of(memory_, over);
    if (!statement.test) return items;
    std::vector<Value> kept;
    Inside inside(*this, scope_);
    for (const Value& item : items) {
        inside.begin_again();
        set(statement.target, item);
        if (truth(evaluate(*statement.test))) kept.push_back(item);
    }
    return kept;
}

Renderer::Flow Renderer::run_loop(const Statement& statement, const Value& over, Scope* around, int depth) {
    std::vector<Value> items;
    {
        const Inside inside(*this, around);
        items = looped_items(statement, over);
    }
    Loop* const loop =
        memory_.loop({.items = std::move(items), .depth = depth, .statement = &statement, .scope = around});
    bool has_ended = false;  // a round; else is for loops without one, as Jinja has it
    Inside inside(*this, around);
    for (; loop->index < loop->items.size(); ++loop->index) {
        if (loop->index > 0) inside.begin_again();
        memory_.step();
        set(statement.target, loop->items[loop->index]);
        set_name("loop", static_cast<const Loop*>(loop));
        const Flow flow = run_all(statement.body);
        if (flow == Flow::leave_loop) break;
        has_ended = has_ended || flow == Flow::on;
    }
    if (has_ended) return Flow::on;
    inside.begin_again();
    return run_all(statement.otherwise);
}

Renderer::Flow Renderer::run_with(const Statement& statement) {
    std::vector<std::pair<std::string_view, Value>> names;
    for (const Parameter& parameter : statement.parameters)
        names.emplace_back(parameter.name, evaluate(*parameter.otherwise));
    const Inside inside(*this, scope_);
    for (const auto& [name, value] : names) set_name(name, value);
    return run_all(statement.body);
}

Value Renderer::captured(const std::function<void()>& writes) {
    std::string text;
    std::string* const before = std::exchange(out_, &text);
    writes();
    out_ = before;
    return memory_.text(std::move(text));
}

/// What the body writes, through the filters.
Value Renderer::block_of(const Statement& statement) {
    block_text_ = captured([&] { run_inside(statement.body); });
    return statement.value ? evaluate(*statement.value) : block_text_;
}

void Renderer::set(const Target& target, const Value& value) {
    if (!target.attribute.empty()) {
        const Value holder = look_up(target.name);
        const auto* space = std::get_if<Space*>(&holder);
        if (space == nullptr)
            throw Fault(fmt::format("{} is no namespace: its attributes cannot be set", target.name));
        if (Value* const known = find(memory_, **space, target.attribute))
            *known = value;
        else
            (*space)->entries.emplace_back(target.attribute, value);
        return;
    }
    if (target.parts.empty()) return set_name(target.name, value);
    require_defined(value);
    const std::vector<Value> items = items_of(memory_, value);
    if (items.size() != target.parts.size())
        throw Fault(fmt::format("{} values where {} are set", items.size(), target.parts.size()));
    for (std::size_t i = 0; i < items.size(); ++i) set(target.parts[i], items[i]);
}

void Renderer::set_name(std::string_view name, const Value& value) {
    memory_.step(scope_->names.size() * bytes_of_name);
    for (auto& [known, old] : scope_->names) {
        if (known != name) continue;
        old = value;
        return;
    }
    memory_.take(sizeof(scope_->names.front()));
    scope_->names.emplace_back(name, value);
}

void Renderer::keep_scopes() {
    for (Scope* scope = scope_; scope != nullptr && !scope->is_kept; scope = scope->outer)
        scope->is_kept = true;
}

// Expressions

Value Renderer::evaluate(const Expression& expression) {
    const Deeper deeper(*this);
    memory_.step();
    line_ = expression.line;
    using Kind = Expression::Kind;
    switch (expression.kind) {
        case Kind::constant: return literal(expression);
        case Kind::text: return text_value(expression.text);
        case Kind::name: return look_up(expression.text);
        case Kind::list:
        case Kind::tuple:
        case Kind::dict: return evaluate_all(expression);
        case Kind::attribute: return attribute_of(memory_, evaluate(*expression.parts[0]), expression.text);
        case Kind::element:
        case Kind::slice: return chosen_place(expression);
        case Kind::call: {
            const Value callee = evaluate(*expression.parts[0]);
            return call(callee, arguments_of(expression));
        }
        case Kind::filter: {
            const Value input = expression.parts[0] ? evaluate(*expression.parts[0]) : block_text_;
            return apply_filter(memory_, expression.text, input, arguments_of(expression));
        }
        case Kind::test: {
            const Value value = evaluate(*expression.parts[0]);
            return apply_test(memory_, expression.text, value, arguments_of(expression));
        }
        case Kind::negative: return negated(evaluate(*expression.parts[0]));
        case Kind::positive: return compute(memory_, "+", std::int64_t{0}, evaluate(*expression.parts[0]));
        case Kind::inverse: return !truth(evaluate(*expression.parts[0]));
        case Kind::all:
        case Kind::any: return all_or_any(expression);
        case Kind::choice: return choose(expression);
        case Kind::comparison: return compared(expression);
        case Kind::chain: return chained(expression);
        case Kind::power: {
            const Value base = evaluate(*expression.parts[0]);
            return compute(memory_, "**", base, evaluate(*expression.parts[1]));
        }
        case Kind::join: return joined(expression);
    }
    return Undefined{};
}

Value Renderer::literal(const Expression& expression) {
    if (const auto* boolean = std::get_if<bool>(&expression.constant)) return *boolean;
    if (const auto* number = std::get_if<std::int64_t>(&expression.constant)) return *number;
    if (const auto* number = std::get_if<double>(&expression.constant)) return *number;
    return None{};
}

Value Renderer::evaluate_all(const Expression& expression) {
    std::vector<Value> values;
    values.reserve(expression.parts.size());
    for (const ExpressionPtr& part : expression.parts) values.push_back(evaluate(*part));
    if (expression.kind != Expression::Kind::dict)
        return memory_.list(std::move(values), expression.kind == Expression::Kind::tuple ? List::Sort::tuple
                                                                                          : List::Sort::list);
    std::vector<std::pair<Value, Value>> entries;
    for (std::size_t i = 0; i < values.size(); i += 2) entries.emplace_back(values[i], values[i + 1]);
    return memory_.dict(std::move(entries));
}

Value Renderer::choose(const Expression& expression) {
    if (truth(evaluate(*expression.parts[1]))) return evaluate(*expression.parts[0]);
    if (expression.parts[2]) return evaluate(*expression.parts[2]);
    return Undefined{"the inline if-expression evaluated to false and no else section was defined."};
}

Value Renderer::chosen_place(const Expression& expression) {
    const auto part = [&](std::size_t i) {
        return expression.parts[i] ? evaluate(*expression.parts[i]) : None{};
    };
    const Value holder = part(0);
    const Value first = part(1);
    if (expression.kind == Expression::Kind::element) return item_of(memory_, holder, first);
    const Value second = part(2);
    return slice(memory_, holder, first, second, part(3));
}

Value Renderer::all_or_any(const Expression& expression) {
    const bool stops_at = expression.kind == Expression::Kind::any;
    Value value;
    for (const ExpressionPtr& part : expression.parts) {
        value = evaluate(*part);
        if (truth(value) == stops_at) break;
    }
    return value;
}

Value Renderer::compared(const Expression& expression) {
    Value left = evaluate(*expression.parts[0]);
    for (std::size_t i = 0; i < expression.words.size(); ++i) {
        Value right = evaluate(*expression.parts[i + 1]);
        if (!compare(memory_, expression.words[i], left, right)) return false;
        left = std::move(right);
    }
    return true;
}

/// Texts that are added to each other are put together once.
Value Renderer::chained(const Expression& expression) {
    const auto is_plain = [](const Value& value) {
        return is<Text>(value) && !std::get<Text>(value).is_safe;
    };
    Value total = evaluate(*expression.parts[0]);
    std::string sum;  // of `total` and the texts behind it
    bool has_sum = false;
    for (std::size_t i = 0; i < expression.words.size(); ++i) {
        const std::string& sign = expression.words[i];
        const Value next = evaluate(*expression.parts[i + 1]);
        if (sign == "+" && is_plain(total) && is_plain(next)) {
            if (!std::exchange(has_sum, true)) sum = std::get<Text>(total).text;
            memory_.take(std::get<Text>(next).text.size());
            sum += std::get<Text>(next).text;
            continue;
        }
        if (std::exchange(has_sum, false)) total = memory_.text(std::exchange(sum, {}));
        total = compute(memory_, sign, total, next);
    }
    return has_sum ? memory_.text(std::move(sum)) : total;
}

Value Renderer::joined(const Expression& expression) {
    std::string text;
    for (const ExpressionPtr& part : expression.parts) {
        const std::string_view one = text_of(memory_, evaluate(*part));
        memory_.take(one.size());
        text += one;
    }
    return memory_.text(std::move(text));
}

Arguments Renderer::arguments_of(const Expression& expression) {
    Arguments arguments;
    const std::size_t named = expression.parts.size() - expression.words.size();
    for (std::size_t i = 1; i < expression.parts.size(); ++i) {
        Value value = evaluate(*expression.parts[i]);
        const std::string_view name = i < named ? std::string_view() : expression.words[i - named];
        if (name.starts_with('*'))
            spread(arguments, value, name == "**");
        else if (i < named)
            arguments.values.push_back(std::move(value));
        else
            arguments.named.emplace_back(name, std::move(value));
    }
    return arguments;
}

void Renderer::spread(Arguments& arguments, const Value& over, bool has_names) {
    const std::vector<Value> items = items_of(memory_, over);
    memory_.take(items.size() * sizeof(Value));
    if (!has_names) {
        arguments.values.insert(arguments.values.end(), items.begin(), items.end());
        return;
    }
    if (!is<const Dict*>(over)) throw Fault(fmt::format("** in front of a {}", type_name(over)));
    for (const auto& [name, value] : std::get<const Dict*>(over)->entries)
        arguments.named.emplace_back(text_of(memory_, name), value);
}

Value Renderer::look_up(std::string_view name) {
    static constexpr std::string_view builtins[] = {"range", "namespace", "dict", "raise_exception",
                                                    "strftime_now"};
    for (const Scope* scope = scope_; scope != nullptr; scope = scope->outer) {
        memory_.step(scope->names.size() * bytes_of_name);
        for (const auto& [known, value] : scope->names)
            if (known == name) return value;
    }
    if (std::ranges::find(builtins, name) != std::end(builtins)) return memory_.function({.name = name});
    if (name == "cycler" || name == "joiner" || name == "lipsum")
        throw Fault(fmt::format("the function {} is not known here", name));
    return Undefined{memory_.keep(fmt::format("'{}' is undefined", name))};
}

}  // namespace hone::decoder::jinja
