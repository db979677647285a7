// The options by which commands name what they work on: a model, or one operator with fields, at token
// counts.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tuner/workload.h"

namespace hone::cli {

/// Values of the options; declare() binds them, workload() makes sense of them.
struct Target {
    std::string model;
    std::string op;
    std::string fields;
    std::string tokens;  ///< "1,8,512"
    std::string dtype;
    int tensor_parallel = 1;

    /// MODEL, --op, --fields, --tokens, --dtype, --tp.
    void declare(CLI::App& app);
    /// Both MODEL and --op: the problems of that operator in the model. Throws Failure (usage) when neither is
    /// given or --fields goes with a model, and ConfigError.
    [[nodiscard]] tuner::Workload workload() const;
    /// The same target as words of a command line.
    [[nodiscard]] std::string command_words() const;
};

/// "1,8,512"; empty for "". Throws Failure (usage).
[[nodiscard]] std::vector<std::int64_t> tokens_from(const std::string& list);

/// "rmsnorm" "dtype=bf16" "hidden=4096" "rows=16" as a problem. Throws ConfigError with what is wrong.
[[nodiscard]] Problem problem_from_words(const std::vector<std::string>& words);

/// Known families by name. Throws Failure (usage) with the nearest name.
[[nodiscard]] const Family& family_named(const std::string& name);

/// "sm_90a". Throws Failure (usage) listing the architectures that Hone compiles for.
[[nodiscard]] Arch arch_named(const std::string& name);

}  // namespace hone::cli
