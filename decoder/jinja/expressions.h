// Expressions out of a template's tokens. Internal to the parser.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "decoder/jinja/lexer.h"
#include "decoder/jinja/syntax.h"

namespace hone::decoder::jinja {

/// A place in the tokens, and what is read from there. Functions throw Fault.
class Expressions {
  public:
    explicit Expressions(std::span<const Token> tokens) : tokens_(tokens) {}

    [[nodiscard]] const Token& next() const { return tokens_[at_]; }
    const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
    [[nodiscard]] bool has_symbol(std::string_view symbol) const;
    [[nodiscard]] bool has_name(std::string_view name) const;
    bool skip_symbol(std::string_view symbol);
    bool skip_name(std::string_view name);
    void require_symbol(std::string_view symbol);
    void require_name(std::string_view name);
    std::string take_name(const char* what);
    [[noreturn]] void fail(const std::string& what) const;
    /// "... is here, and NEEDED has to be".
    [[noreturn]] void fail_at(std::string_view needed) const;

    [[nodiscard]] ExpressionPtr expression();
    /// Several with commas are a tuple. Without choices, an `if` ends it.
    [[nodiscard]] ExpressionPtr expressions(bool with_choices = true);
    /// "| name(...) | ...", of `input`, which may be missing.
    [[nodiscard]] ExpressionPtr filters(ExpressionPtr input, bool begins_inside);

    /// One more level, while it lives.
    class Level {
      public:
        explicit Level(Expressions& parser);
        ~Level() { --parser_.level_; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;

      private:
        Expressions& parser_;
    };

  private:
    using Kind = Expression::Kind;
    using Rule = ExpressionPtr (Expressions::*)();

    Expression begin(Kind kind) const { return {.kind = kind, .line = next().line}; }
    ExpressionPtr finish(Expression made) const;
    ExpressionPtr unary_of(Kind kind, ExpressionPtr part) const;

    ExpressionPtr operands(Kind kind, std::string_view word, Rule operand);
    ExpressionPtr chain(std::initializer_list<std::string_view> signs, Rule operand);
    ExpressionPtr any();
    ExpressionPtr all();
    ExpressionPtr inverse();
    ExpressionPtr comparison();
    std::string comparing_sign();
    ExpressionPtr sum();
    ExpressionPtr joined();
    ExpressionPtr product();
    ExpressionPtr power();
    ExpressionPtr unary(bool with_filters = true);
    ExpressionPtr primary();
    ExpressionPtr named(const Token& token);
    ExpressionPtr number();
    ExpressionPtr literal();
    ExpressionPtr list();
    ExpressionPtr dict();
    ExpressionPtr bracketed();
    ExpressionPtr called(ExpressionPtr inner);
    ExpressionPtr with_postfixes(ExpressionPtr inner);
    ExpressionPtr with_filters_and_tests(ExpressionPtr inner);
    ExpressionPtr attribute(ExpressionPtr inner);
    ExpressionPtr element(ExpressionPtr inner);
    ExpressionPtr test(ExpressionPtr inner);
    void arguments(Expression& of);
    std::string dotted_name(const char* what);
    [[nodiscard]] bool begins_argument() const;

    std::span<const Token> tokens_;
    std::size_t at_ = 0;
    int level_ = 0;
};

}  // namespace hone::decoder::jinja
