#include "decoder/jinja/parser.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "decoder/jinja/expressions.h"
#include "decoder/jinja/fault.h"

namespace hone::decoder::jinja {
namespace {

using Kind = Statement::Kind;

class Parser {
  public:
    explicit Parser(std::span<const Token> tokens) : in_(tokens) {}

    Statements run() {
        Statements statements;
        while (in_.next().kind != TokenKind::end) statements.push_back(statement());
        return statements;
    }

  private:
    using Names = std::initializer_list<std::string_view>;

    [[nodiscard]] Statement begin(Kind kind) const { return {.kind = kind, .line = in_.next().line}; }

    Statement statement() {
        Statement made = begin(Kind::data);
        if (in_.next().kind == TokenKind::data) {
            made.text = in_.take().text;
            return made;
        }
        const bool is_output = in_.next().kind == TokenKind::begin_output;
        in_.take();
        if (!is_output) return tag(in_.take_name("the name of a statement"));
        made.kind = Kind::output;
        made.value = in_.expressions();
        end(TokenKind::end_output, "\"}}\"");
        return made;
    }

    void end(TokenKind kind, const char* needed) {
        if (in_.next().kind != kind) in_.fail_at(needed);
        in_.take();
    }
    void end_tag() { end(TokenKind::end_statement, "\"%}\""); }

    Statement tag(const std::string& name) {
        const Expressions::Level level(in_);
        if (name == "for") return loop();
        if (name == "if") return choice();
        if (name == "set") return set();
        if (name == "macro") return macro();
        if (name == "call") return call();
        if (name == "filter") return filter();
        if (name == "with") return with();
        if (name == "generation") return scope();
        if (name == "print") return print();
        if (name == "break" || name == "continue") return jump(name == "break");
        in_.fail(
            fmt::format("the statement {:?} is not known here; known are for, if, set, macro, call, filter, "
                        "with, print, raw, generation, break and continue",
                        name));
    }

    /// The statements up to a tag with one of these names, whose name is taken; `which` gets it.
    Statements body(Names ends, std::string* which = nullptr) {
        in_.skip_symbol(":");
        end_tag();
        Statements statements;
        while (true) {
            if (in_.next().kind == TokenKind::end)
                in_.fail(fmt::format("the template ends where {{% {} %}} is needed", *(ends.end() - 1)));
            if (in_.next().kind != TokenKind::begin_statement) {
                statements.push_back(statement());
                continue;
            }
            in_.take();
            const std::string name = in_.take_name("the name of a statement");
            if (std::ranges::find(ends, name) == ends.end()) {
                statements.push_back(tag(name));
                continue;
            }
            if (which != nullptr) *which = name;
            return statements;
        }
    }

    Target target() {
        Target made;
        if (in_.skip_symbol("(")) {
            made = targets();
            in_.require_symbol(")");
            return made;
        }
        made.name = in_.take_name("a name");
        if (in_.skip_symbol(".")) made.attribute = in_.take_name("a name");
        static constexpr std::string_view constants[] = {"true", "false", "none", "True", "False", "None"};
        if (std::ranges::find(constants, made.name) != std::end(constants))
            in_.fail(fmt::format("{} cannot be set", made.name));
        return made;
    }

    Target targets() {
        const Expressions::Level level(in_);
        Target first = target();
        if (!in_.has_symbol(",")) return first;
        Target made;
        made.parts.push_back(std::move(first));
        while (in_.skip_symbol(",") && in_.next().kind != TokenKind::end_statement && !in_.has_symbol(")") &&
               !in_.has_name("in") && !in_.has_symbol("="))
            made.parts.push_back(target());
        return made;
    }

    Statement loop() {
        Statement made = begin(Kind::loop);
        ++loops_;
        made.target = targets();
        in_.require_name("in");
        made.value = in_.expressions(false);
        if (in_.skip_name("if")) made.test = in_.expression();
        made.recursive = in_.skip_name("recursive");
        std::string end;
        made.body = body({"else", "endfor"}, &end);
        --loops_;
        if (end == "else") made.otherwise = body({"endfor"});
        end_tag();
        return made;
    }

    Statement choice() {
        Statement made = begin(Kind::choice);
        std::string end = "elif";
        while (end == "elif") {
            Branch branch;
            branch.condition = in_.expressions(false);
            branch.body = body({"elif", "else", "endif"}, &end);
            made.branches.push_back(std::move(branch));
        }
        if (end == "else") made.otherwise = body({"endif"});
        end_tag();
        return made;
    }

    Statement set() {
        Statement made = begin(Kind::set);
        made.target = targets();
        if (in_.skip_symbol("=")) {
            made.value = in_.expressions();
            end_tag();
            return made;
        }
        made.kind = Kind::set_block;
        if (in_.has_symbol("|")) made.value = in_.filters(nullptr, false);
        made.body = function_body({"endset"});
        end_tag();
        return made;
    }

    /// What a loop around it cannot be left from.
    Statements function_body(Names ends) {
        const int loops = std::exchange(loops_, 0);
        Statements statements = body(ends);
        loops_ = loops;
        return statements;
    }

    std::vector<Parameter> parameters() {
        std::vector<Parameter> made;
        in_.require_symbol("(");
        while (!in_.has_symbol(")")) {
            Parameter parameter{.name = in_.take_name("a name")};
            if (in_.skip_symbol("="))
                parameter.otherwise = in_.expression();
            else if (!made.empty() && made.back().otherwise)
                in_.fail("a parameter without a value behind one with a value");
            made.push_back(std::move(parameter));
            if (!in_.skip_symbol(",")) break;
        }
        in_.require_symbol(")");
        return made;
    }

    Statement macro() {
        Statement made = begin(Kind::macro);
        made.text = in_.take_name("a name");
        made.parameters = parameters();
        made.body = function_body({"endmacro"});
        end_tag();
        return made;
    }

    Statement call() {
        Statement made = begin(Kind::call);
        if (in_.has_symbol("(")) made.parameters = parameters();
        made.value = in_.expression();
        if (made.value->kind != Expression::Kind::call) in_.fail_at("a call");
        made.body = function_body({"endcall"});
        end_tag();
        return made;
    }

    Statement filter() {
        Statement made = begin(Kind::filter_block);
        made.value = in_.filters(nullptr, true);
        made.body = function_body({"endfilter"});
        end_tag();
        return made;
    }

    Statement with() {
        Statement made = begin(Kind::with);
        while (in_.next().kind == TokenKind::name) {
            Parameter variable{.name = in_.take_name("a name")};
            in_.require_symbol("=");
            variable.otherwise = in_.expression();
            made.parameters.push_back(std::move(variable));
            if (!in_.skip_symbol(",")) break;
        }
        made.body = body({"endwith"});
        end_tag();
        return made;
    }

    Statement scope() {
        Statement made = begin(Kind::scope);
        made.body = function_body({"endgeneration"});
        end_tag();
        return made;
    }

    Statement print() {
        Statement made = begin(Kind::output);
        made.value = in_.expressions();
        end_tag();
        return made;
    }

    Statement jump(bool leaves) {
        if (loops_ == 0) in_.fail(fmt::format("{} outside of a loop", leaves ? "break" : "continue"));
        Statement made = begin(leaves ? Kind::leave_loop : Kind::next_round);
        end_tag();
        return made;
    }

    Expressions in_;
    int loops_ = 0;  ///< that a statement is in
};

}  // namespace

Statements read_statements(std::span<const Token> tokens) { return Parser(tokens).run(); }

}  // namespace hone::decoder::jinja
