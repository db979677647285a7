#include "cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <utility>

namespace hone::cli {
namespace {

/// The name of a check that some options do without.
constexpr const char* not_empty = "not empty";

/// No range says what it is that it does not hold.
template <class Number>
std::string refusal_of_other_than(const std::string& text) {
    Number value{};
    if (CLI::detail::lexical_cast(text, value)) return "";
    return "Value " + text + " is no " + (std::is_integral_v<Number> ? "whole number" : "number");
}

/// The library's conversion would say that it failed, not why.
std::string refusal_of_wide(const std::string& text) {
    std::int64_t value = 0;
    const bool is_number = CLI::detail::lexical_cast(text, value);
    if (!is_number || std::in_range<int>(value)) return "";
    return fmt::format("Value {} is not from {} to {}", text, std::numeric_limits<int>::min(),
                       std::numeric_limits<int>::max());
}

/// A command line of a script whose variable is unset: no option means that, and one of them would clear all.
std::string refusal_of_empty(const std::string& text) {
    return text.empty() ? "the value is empty: give one, or leave the option out" : "";
}

/// What the library would take for the largest number that there is.
std::string refusal_of_long_number(const std::string& text) {
    errno = 0;
    static_cast<void>(std::strtoll(text.c_str(), nullptr, 0));
    return errno == ERANGE ? "Value " + text + " has too many digits" : "";
}

/// No comparison refuses it.
std::string refusal_of_nan(const std::string& text) {
    double value = 0;
    const bool is_nan = CLI::detail::lexical_cast(text, value) && std::isnan(value);
    return is_nan ? "Value " + text + " is no number" : "";
}

}  // namespace

Argument Argument::required() const {
    option_->required();
    return *this;
}

Argument Argument::type_name(const std::string& name) const {
    option_->type_name(name);
    return *this;
}

Argument Argument::range(int least, int most) const {
    option_->check(CLI::Range(least, most));
    return *this;
}

Argument Argument::range(double least, double most) const {
    option_->check(CLI::Range(least, most));
    option_->check(refusal_of_nan);
    return *this;
}

Argument Argument::value_may_be_left_out() const {
    option_->expected(0, 1);
    return may_be_empty();
}

Argument Argument::may_be_empty() const {
    option_->get_validator(not_empty)->active(false);
    return *this;
}

Argument Argument::one_value_each() const {
    option_->allow_extra_args(false);
    return *this;
}

Argument Argument::needs(const Argument& other) const {
    option_->needs(other.option_);
    return *this;
}

Argument Argument::excludes(const Argument& other) const {
    option_->excludes(other.option_);
    return *this;
}

bool Argument::is_given() const { return option_->count() > 0; }

Argument Arguments::add_option(const std::string& names, std::string& value, const std::string& says) const {
    return Argument(
        *app_->add_option(names, value, says)->check(CLI::Validator(refusal_of_empty, "", not_empty)));
}

Argument Arguments::add_option(const std::string& names, std::vector<std::string>& value,
                               const std::string& says) const {
    return Argument(*app_->add_option(names, value, says));
}

Argument Arguments::add_option(const std::string& names, int& value, const std::string& says) const {
    return Argument(*app_->add_option(names, value, says)
                         ->check(refusal_of_wide)
                         ->check(refusal_of_other_than<std::int64_t>));
}

Argument Arguments::add_option(const std::string& names, std::int64_t& value, const std::string& says) const {
    return Argument(*app_->add_option(names, value, says)
                         ->check(refusal_of_long_number)
                         ->check(refusal_of_other_than<std::int64_t>));
}

Argument Arguments::add_option(const std::string& names, std::optional<std::int64_t>& value,
                               const std::string& says) const {
    return Argument(*app_->add_option(names, value, says)
                         ->check(refusal_of_long_number)
                         ->check(refusal_of_other_than<std::int64_t>));
}

Argument Arguments::add_option(const std::string& names, double& value, const std::string& says) const {
    return Argument(*app_->add_option(names, value, says)->check(refusal_of_other_than<double>));
}

Argument Arguments::add_flag(const std::string& names, bool& value, const std::string& says) const {
    return Argument(*app_->add_flag(names, value, says));
}

Argument Arguments::get(const std::string& name) const { return Argument(*app_->get_option(name)); }

Arguments Arguments::add_command(const std::string& name, const std::string& says,
                                 std::function<void()> chosen) const {
    app_->require_subcommand(1);
    CLI::App* command = app_->add_subcommand(name, says);
    command->fallthrough();  // --json
    command->footer("");
    command->callback(std::move(chosen));
    return Arguments(*command);
}

void Arguments::when_parsed(std::function<void()> call) const { app_->callback(std::move(call)); }

}  // namespace hone::cli
