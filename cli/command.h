// What a command of the program is, and how one ends. Commands gather data and text; cli.cpp alone prints
// them, so that `--json`, exit codes and errors are the same everywhere.
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "cli/console.h"
#include "tuner/report/report_json.h"

namespace hone::cli {

using tuner::Json;

/// Listed in README.md; never renumbered.
enum class ExitCode : int {
    ok = 0,
    failure = 1,
    usage = 2,
    no_gpu = 3,
    nothing_valid = 4,
    cache_unusable = 5,
    import_refused = 6,
    budget_ended = 7,
    interrupted = 130,
};

struct ErrorInfo {
    std::string code;  ///< a word for programs: "unknown_model", "no_gpu"
    std::string message;
    std::string hint;  ///< what to do; may be empty
};

/// How a command ends. A run that ended early has both its partial data and an error.
struct Outcome {
    ExitCode exit = ExitCode::ok;
    Json data = Json::object();
    std::string text{};  ///< the same for people
    std::optional<ErrorInfo> error{};
};

/// Ends a command with an error; caught in cli.cpp.
class Failure : public std::runtime_error {
  public:
    Failure(ExitCode exit, ErrorInfo info)
        : std::runtime_error(info.message), exit_(exit), info_(std::move(info)) {}
    /// For what cannot be asked for.
    [[nodiscard]] static Failure usage(std::string code, std::string message, std::string hint = {}) {
        return {ExitCode::usage, {std::move(code), std::move(message), std::move(hint)}};
    }
    [[nodiscard]] ExitCode exit() const { return exit_; }
    [[nodiscard]] const ErrorInfo& info() const { return info_; }

  private:
    ExitCode exit_;
    ErrorInfo info_;
};

using Runner = std::function<Outcome(const Console&)>;

struct Command {
    std::string_view name;
    std::string_view summary;
    std::string_view examples;  ///< one a line, shown first by --help
    /// Declares options and arguments; what it returns runs after parsing.
    Runner (*declare)(const Arguments& app);
};

/// In the order of --help. One file each: cli/<name>.cpp.
[[nodiscard]] const std::vector<Command>& commands();

}  // namespace hone::cli
