#include "decoder/jinja/expressions.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "decoder/jinja/fault.h"
#include "decoder/jinja/filters.h"
#include "decoder/jinja/is_tests.h"
#include "decoder/jinja/limits.h"

namespace hone::decoder::jinja {
namespace {

[[noreturn]] void fail_nesting(int line) {
    throw Fault(
        fmt::format("more than {} levels of brackets, statements and operators in each other", max_nesting),
        line);
}

std::string shown(const Token& token) {
    switch (token.kind) {
        case TokenKind::data: return "a text";
        case TokenKind::begin_statement: return "\"{%\"";
        case TokenKind::end_statement: return "\"%}\"";
        case TokenKind::begin_output: return "\"{{\"";
        case TokenKind::end_output: return "\"}}\"";
        case TokenKind::end: return "the end of the template";
        default: return fmt::format("{:?}", token.text);
    }
}

}  // namespace

Expressions::Level::Level(Expressions& parser) : parser_(parser) {
    if (parser.level_ >= max_nesting) fail_nesting(parser.next().line);
    ++parser.level_;
}

bool Expressions::has_symbol(std::string_view symbol) const {
    return next().kind == TokenKind::symbol && next().text == symbol;
}

bool Expressions::has_name(std::string_view name) const {
    return next().kind == TokenKind::name && next().text == name;
}

bool Expressions::skip_symbol(std::string_view symbol) { return has_symbol(symbol) && (take(), true); }
bool Expressions::skip_name(std::string_view name) { return has_name(name) && (take(), true); }

void Expressions::require_symbol(std::string_view symbol) {
    if (!skip_symbol(symbol)) fail_at(fmt::format("\"{}\"", symbol));
}

void Expressions::require_name(std::string_view name) {
    if (!skip_name(name)) fail_at(fmt::format("\"{}\"", name));
}

std::string Expressions::take_name(const char* what) {
    if (next().kind != TokenKind::name) fail_at(what);
    return take().text;
}

void Expressions::fail(const std::string& what) const { throw Fault(what, next().line); }

void Expressions::fail_at(std::string_view needed) const {
    fail(fmt::format("{} where {} is needed", shown(next()), needed));
}

ExpressionPtr Expressions::finish(Expression made) const {
    for (const ExpressionPtr& part : made.parts)
        if (part) made.depth = std::max(made.depth, part->depth + 1);
    if (made.depth > max_nesting) fail_nesting(made.line);
    return std::make_unique<Expression>(std::move(made));
}

ExpressionPtr Expressions::unary_of(Kind kind, ExpressionPtr part) const {
    Expression made = begin(kind);
    made.parts.push_back(std::move(part));
    return finish(std::move(made));
}

ExpressionPtr Expressions::expression() {
    ExpressionPtr value = any();
    while (has_name("if")) {
        Expression made = begin(Kind::choice);
        take();
        made.parts.push_back(std::move(value));
        made.parts.push_back(any());
        const Level level(*this);
        made.parts.push_back(skip_name("else") ? expression() : nullptr);
        value = finish(std::move(made));
    }
    return value;
}

ExpressionPtr Expressions::expressions(bool with_choices) {
    Expression made = begin(Kind::tuple);
    bool is_tuple = false;
    while (true) {
        const TokenKind kind = next().kind;
        const bool ends = kind == TokenKind::end_statement || kind == TokenKind::end_output ||
                          has_symbol(")") || has_symbol("]");
        if (ends && (is_tuple || has_symbol(")"))) break;
        made.parts.push_back(with_choices ? expression() : any());
        if (!skip_symbol(",")) break;
        is_tuple = true;
    }
    if (!is_tuple && made.parts.size() == 1) return std::move(made.parts.front());
    return finish(std::move(made));
}

/// One operand, or several with `word` between them.
ExpressionPtr Expressions::operands(Kind kind, std::string_view word, Rule operand) {
    ExpressionPtr first = (this->*operand)();
    if (!has_name(word)) return first;
    Expression made = begin(kind);
    made.parts.push_back(std::move(first));
    while (skip_name(word)) made.parts.push_back((this->*operand)());
    return finish(std::move(made));
}

ExpressionPtr Expressions::any() { return operands(Kind::any, "or", &Expressions::all); }
ExpressionPtr Expressions::all() { return operands(Kind::all, "and", &Expressions::inverse); }

ExpressionPtr Expressions::inverse() {
    if (!skip_name("not")) return comparison();
    const Level level(*this);
    return unary_of(Kind::inverse, inverse());
}

/// Empty where none follows.
std::string Expressions::comparing_sign() {
    static constexpr std::string_view signs[] = {"==", "!=", "<", "<=", ">", ">="};
    if (next().kind == TokenKind::symbol)
        return std::ranges::find(signs, next().text) != std::end(signs) ? take().text : "";
    if (skip_name("in")) return "in";
    if (!has_name("not") || at_ + 1 >= tokens_.size()) return "";
    const Token& behind = tokens_[at_ + 1];
    if (behind.kind != TokenKind::name || behind.text != "in") return "";
    take();
    take();
    return "not in";
}

ExpressionPtr Expressions::comparison() {
    Expression made = begin(Kind::comparison);
    made.parts.push_back(sum());
    for (std::string sign = comparing_sign(); !sign.empty(); sign = comparing_sign()) {
        made.words.push_back(std::move(sign));
        made.parts.push_back(sum());
    }
    return made.words.empty() ? std::move(made.parts.front()) : finish(std::move(made));
}

/// One operand, or several with any of `signs` between them.
ExpressionPtr Expressions::chain(std::initializer_list<std::string_view> signs, Rule operand) {
    const auto has_sign = [&] {
        return std::ranges::any_of(signs, [&](std::string_view sign) { return has_symbol(sign); });
    };
    Expression made = begin(Kind::chain);
    made.parts.push_back((this->*operand)());
    while (has_sign()) {
        made.words.push_back(take().text);
        made.parts.push_back((this->*operand)());
    }
    return made.words.empty() ? std::move(made.parts.front()) : finish(std::move(made));
}

ExpressionPtr Expressions::sum() { return chain({"+", "-"}, &Expressions::joined); }

ExpressionPtr Expressions::joined() {
    Expression made = begin(Kind::join);
    made.parts.push_back(product());
    while (skip_symbol("~")) made.parts.push_back(product());
    return made.parts.size() == 1 ? std::move(made.parts.front()) : finish(std::move(made));
}

ExpressionPtr Expressions::product() { return chain({"*", "/", "//", "%"}, &Expressions::power); }

ExpressionPtr Expressions::power() {
    ExpressionPtr value = unary();
    while (has_symbol("**")) {
        Expression made = begin(Kind::power);
        take();
        made.parts.push_back(std::move(value));
        made.parts.push_back(unary());
        value = finish(std::move(made));
    }
    return value;
}

ExpressionPtr Expressions::unary(bool with_filters) {
    const Level level(*this);
    ExpressionPtr value;
    if (skip_symbol("-"))
        value = unary_of(Kind::negative, unary(false));
    else if (skip_symbol("+"))
        value = unary_of(Kind::positive, unary(false));
    else
        value = primary();
    value = with_postfixes(std::move(value));
    return with_filters ? with_filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr Expressions::primary() {
    switch (next().kind) {
        case TokenKind::name: return named(take());
        case TokenKind::text: return literal();
        case TokenKind::integer:
        case TokenKind::real: return number();
        default: break;
    }
    if (has_symbol("(")) return bracketed();
    if (has_symbol("[")) return list();
    if (has_symbol("{")) return dict();
    fail_at("a value");
}

ExpressionPtr Expressions::named(const Token& token) {
    Expression made{.kind = Kind::constant, .line = token.line};
    if (token.text == "true" || token.text == "True")
        made.constant = true;
    else if (token.text == "false" || token.text == "False")
        made.constant = false;
    else if (token.text != "none" && token.text != "None") {
        made.kind = Kind::name;
        made.text = token.text;
    }
    return finish(std::move(made));
}

ExpressionPtr Expressions::number() {
    Expression made = begin(Kind::constant);
    const Token& token = take();
    const char* const begin = token.text.data();
    const char* const end = begin + token.text.size();
    std::errc error{};
    if (token.kind == TokenKind::integer) {
        std::int64_t value = 0;
        error = std::from_chars(begin, end, value).ec;
        made.constant = value;
    } else {
        double value = 0;
        error = std::from_chars(begin, end, value).ec;
        made.constant = value;
    }
    if (error != std::errc()) fail(fmt::format("{:.40} is too large a number", token.text));
    return finish(std::move(made));
}

/// Several behind each other are one.
ExpressionPtr Expressions::literal() {
    Expression made = begin(Kind::text);
    while (next().kind == TokenKind::text) made.text += take().text;
    return finish(std::move(made));
}

ExpressionPtr Expressions::bracketed() {
    take();
    ExpressionPtr inner = expressions();
    require_symbol(")");
    return inner;
}

ExpressionPtr Expressions::list() {
    Expression made = begin(Kind::list);
    take();
    while (!has_symbol("]")) {
        made.parts.push_back(expression());
        if (!skip_symbol(",")) break;
    }
    require_symbol("]");
    return finish(std::move(made));
}

ExpressionPtr Expressions::dict() {
    Expression made = begin(Kind::dict);
    take();
    while (!has_symbol("}")) {
        made.parts.push_back(expression());
        require_symbol(":");
        made.parts.push_back(expression());
        if (!skip_symbol(",")) break;
    }
    require_symbol("}");
    return finish(std::move(made));
}

ExpressionPtr Expressions::called(ExpressionPtr inner) {
    Expression made = begin(Kind::call);
    made.parts.push_back(std::move(inner));
    arguments(made);
    return finish(std::move(made));
}

ExpressionPtr Expressions::with_postfixes(ExpressionPtr inner) {
    while (true) {
        if (has_symbol("."))
            inner = attribute(std::move(inner));
        else if (has_symbol("["))
            inner = element(std::move(inner));
        else if (has_symbol("("))
            inner = called(std::move(inner));
        else
            return inner;
    }
}

ExpressionPtr Expressions::with_filters_and_tests(ExpressionPtr inner) {
    while (true) {
        if (has_symbol("|"))
            inner = filters(std::move(inner), false);
        else if (has_name("is"))
            inner = test(std::move(inner));
        else if (has_symbol("("))
            inner = called(std::move(inner));
        else
            return inner;
    }
}

ExpressionPtr Expressions::attribute(ExpressionPtr inner) {
    Expression made = begin(Kind::attribute);
    take();
    made.parts.push_back(std::move(inner));
    if (next().kind == TokenKind::integer) {
        made.kind = Kind::element;
        made.parts.push_back(number());
    } else {
        made.text = take_name("a name");
    }
    return finish(std::move(made));
}

/// Between brackets: an index, a slice, or several indexes with commas.
ExpressionPtr Expressions::element(ExpressionPtr inner) {
    Expression made = begin(Kind::element);
    take();
    made.parts.push_back(std::move(inner));
    if (has_symbol("]")) fail_at("an index");
    made.parts.push_back(has_symbol(":") ? nullptr : expressions());
    if (skip_symbol(":")) {
        made.kind = Kind::slice;
        made.parts.push_back(has_symbol(":") || has_symbol("]") ? nullptr : expression());
        made.parts.push_back(skip_symbol(":") && !has_symbol("]") ? expression() : nullptr);
    }
    require_symbol("]");
    return finish(std::move(made));
}

std::string Expressions::dotted_name(const char* what) {
    std::string name = take_name(what);
    while (skip_symbol(".")) name += "." + take_name(what);
    return name;
}

ExpressionPtr Expressions::filters(ExpressionPtr inner, bool begins_inside) {
    while (has_symbol("|") || begins_inside) {
        if (!begins_inside) take();
        begins_inside = false;
        Expression made = begin(Kind::filter);
        made.text = dotted_name("a filter's name");
        if (!is_filter(made.text)) fail(fmt::format("there is no filter {:?}", made.text));
        made.parts.push_back(std::move(inner));
        if (has_symbol("(")) arguments(made);
        inner = finish(std::move(made));
    }
    return inner;
}

bool Expressions::begins_argument() const {
    switch (next().kind) {
        case TokenKind::name: return !has_name("else") && !has_name("or") && !has_name("and");
        case TokenKind::text:
        case TokenKind::integer:
        case TokenKind::real: return true;
        default: return has_symbol("(") || has_symbol("[") || has_symbol("{");
    }
}

ExpressionPtr Expressions::test(ExpressionPtr inner) {
    Expression made = begin(Kind::test);
    take();
    const bool is_inverse = skip_name("not");
    made.text = dotted_name("a test's name");
    if (!is_test(made.text)) fail(fmt::format("there is no test {:?}", made.text));
    made.parts.push_back(std::move(inner));
    if (has_symbol("(")) {
        arguments(made);
    } else if (begins_argument()) {
        if (has_name("is")) fail("a test of a test");
        made.parts.push_back(with_postfixes(primary()));
    }
    ExpressionPtr tested = finish(std::move(made));
    return is_inverse ? unary_of(Kind::inverse, std::move(tested)) : std::move(tested);
}

void Expressions::arguments(Expression& of) {
    require_symbol("(");
    while (!has_symbol(")")) {
        const bool is_spread = has_symbol("*") || has_symbol("**");
        const bool is_named = next().kind == TokenKind::name && at_ + 1 < tokens_.size() &&
                              tokens_[at_ + 1].kind == TokenKind::symbol && tokens_[at_ + 1].text == "=";
        if (is_spread) {
            of.words.push_back(take().text);
        } else if (is_named) {
            of.words.push_back(take().text);
            take();
        } else if (!of.words.empty()) {
            fail("an argument without a name behind one with a name");
        }
        of.parts.push_back(expression());
        if (!skip_symbol(",")) break;
    }
    require_symbol(")");
}

}  // namespace hone::decoder::jinja
