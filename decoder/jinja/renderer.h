// One text out of a template's statements. Internal to Template, which makes one for each text.
#pragma once

#include <ctime>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decoder/jinja/memory.h"
#include "decoder/jinja/syntax.h"
#include "decoder/jinja/value.h"

namespace hone::decoder::jinja {

/// Names that statements set, and what is around them.
struct Scope {
    Scope* outer = nullptr;
    std::vector<std::pair<std::string_view, Value>> names{};
    bool is_kept = false;  ///< a macro refers to it
};

class Renderer {
  public:
    /// Both outlive it.
    Renderer(const nlohmann::ordered_json& variables, const std::tm& now);
    Renderer(const Renderer&) = delete;
    Renderer& operator=(const Renderer&) = delete;

    /// Throws Fault and Refusal.
    [[nodiscard]] std::string run(const Statements& statements);
    /// The line that it has come to.
    [[nodiscard]] int line() const { return line_; }

  private:
    enum class Flow { on, leave_loop, next_round };
    class Deeper;
    /// A scope of its own inside of another, while it lives.
    class Inside {
      public:
        Inside(Renderer& renderer, Scope* outer)
            : renderer_(renderer), before_(renderer.scope_), outer_(outer) {
            begin();
        }
        ~Inside() { renderer_.scope_ = before_; }
        Inside(const Inside&) = delete;
        Inside& operator=(const Inside&) = delete;

        /// The next round of a loop: nothing is set.
        void begin_again() {
            if (renderer_.scope_->is_kept) return begin();
            renderer_.scope_->names.clear();
        }

      private:
        void begin() {
            renderer_.memory_.take(sizeof(Scope));
            renderer_.scope_ = &renderer_.scopes_.emplace_back(Scope{.outer = outer_});
        }

        Renderer& renderer_;
        Scope* before_;
        Scope* outer_;
    };

    Value value_of(const nlohmann::ordered_json& json, int depth);

    Flow run_all(const Statements& statements);
    Flow execute(const Statement& statement);
    Flow run_choice(const Statement& statement);
    Flow run_loop(const Statement& statement, const Value& over, Scope* around, int depth);
    Flow run_with(const Statement& statement);
    Flow run_inside(const Statements& statements);
    std::vector<Value> looped_items(const Statement& statement, const Value& over);
    void write(std::string_view text);
    void set(const Target& target, const Value& value);
    void set_name(std::string_view name, const Value& value);
    Value block_of(const Statement& statement);
    void keep_scopes();
    /// The text that it writes.
    Value captured(const std::function<void()>& writes);

    Value evaluate(const Expression& expression);
    Value evaluate_all(const Expression& expression);
    Value literal(const Expression& expression);
    Value choose(const Expression& expression);
    Value chosen_place(const Expression& expression);
    Value all_or_any(const Expression& expression);
    Value compared(const Expression& expression);
    Value chained(const Expression& expression);
    Value joined(const Expression& expression);
    Value look_up(std::string_view name);
    Arguments arguments_of(const Expression& expression);
    void spread(Arguments& arguments, const Value& over, bool has_names);

    Value call(const Value& callee, const Arguments& arguments);
    Value call_macro(const Function& macro, const Arguments& arguments);
    Value call_builtin(std::string_view name, const Arguments& arguments);
    Value call_range(const Arguments& arguments);
    Value call_namespace(const Arguments& arguments);
    Value call_dict(const Arguments& arguments);
    Value call_clock(const Arguments& arguments);
    void call_with_body(const Statement& statement);

    Memory memory_;
    const nlohmann::ordered_json& variables_;
    const std::tm& now_;
    std::deque<Scope> scopes_{};
    Scope* scope_ = nullptr;
    std::string* out_ = nullptr;
    Value block_text_{};  ///< of a filtered block, until its first filter takes it
    int line_ = 0;
    int depth_ = 0;
};

}  // namespace hone::decoder::jinja
