// What a command takes: options, flags and positional arguments. The library that reads them is included by
// arguments.cpp, declarations.cpp and cli.cpp alone, since a file that includes it compiles for seven seconds
// longer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hone::cli {

/// One of them, to say more of it: add_option(...).required().type_name("FILE"). Valid as long as the
/// program.
class Argument {
  public:
    explicit Argument(CLI::Option& option) : option_(&option) {}

    Argument required() const;
    /// What its value is called in --help, in completion and on the man page.
    Argument type_name(const std::string& name) const;
    Argument range(int least, int most) const;
    Argument range(double least, double most) const;
    /// "--replay" and "--replay FILE".
    Argument value_may_be_left_out() const;
    /// A text that may say nothing, as a prompt. No other may: see refusal_of_empty().
    Argument may_be_empty() const;
    /// "--peers A --peers B", and not "--peers A B".
    Argument one_value_each() const;
    /// Given without the other, or with it, it is an error.
    Argument needs(const Argument& other) const;
    Argument excludes(const Argument& other) const;

    /// After parsing.
    [[nodiscard]] bool is_given() const;

  private:
    CLI::Option* option_;
};

class Arguments {
  public:
    explicit Arguments(CLI::App& app) : app_(&app) {}

    /// `names`: "-o,--output", or "FILE" of a positional one. The value has to live until the command has
    /// run.
    Argument add_option(const std::string& names, std::string& value, const std::string& says) const;
    Argument add_option(const std::string& names, std::vector<std::string>& value,
                        const std::string& says) const;
    Argument add_option(const std::string& names, int& value, const std::string& says) const;
    Argument add_option(const std::string& names, std::int64_t& value, const std::string& says) const;
    Argument add_option(const std::string& names, std::optional<std::int64_t>& value,
                        const std::string& says) const;
    Argument add_option(const std::string& names, double& value, const std::string& says) const;
    Argument add_flag(const std::string& names, bool& value, const std::string& says) const;
    /// One that was added.
    [[nodiscard]] Argument get(const std::string& name) const;

    /// A command below this one, of which one has to be given; `chosen` is called when it was.
    Arguments add_command(const std::string& name, const std::string& says,
                          std::function<void()> chosen) const;
    /// Called when all was read.
    void when_parsed(std::function<void()> call) const;

  private:
    CLI::App* app_;
};

}  // namespace hone::cli
