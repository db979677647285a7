// The options by which commands name what they work on: a model, or one operator with fields, at token
// counts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoints/pack/request.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "kernel_templates/operator_problems.h"
#include "tuner/models/workload.h"

namespace hone::cli {

/// Values of the options; declare() binds them, workload() makes sense of them.
struct Target {
    std::string model;
    std::string op;
    std::string fields;
    std::string tokens;  ///< "1,8,512"
    std::string dtype;
    int tensor_parallel = 1;
    std::string format;  ///< how linear layers are stored: "w4a16", "dense"; empty: as the model's file says
    std::optional<std::int64_t> group;
    bool zeros = false;
    bool lm_head = false;
    std::string captured;  ///< a file of HONE_CAPTURE

    /// MODEL, --op, --fields, --tokens, and those of declare_variant().
    void declare(const Arguments& app);
    /// What a model may be taken as: --dtype, --tp, --format, --group, --zeros, --lm-head.
    void declare_variant(const Arguments& app);
    /// --model, and those, which need it.
    Argument declare_model_option(const Arguments& app, const std::string& says);
    /// The same where the model may stand elsewhere, too: whoever asks sees to it that there is one.
    Argument declare_model_and_variant(const Arguments& app, const std::string& says);
    /// --captured.
    Argument declare_captured(const Arguments& app, const std::string& says);
    /// A model or a capture: several operators.
    [[nodiscard]] bool names_many() const { return !model.empty() || !captured.empty(); }
    /// MODEL or --captured with --op: the problems of that operator among theirs. Throws Failure (usage) when
    /// none is given, --fields goes with a model or a format with none, InputError and ConfigError.
    [[nodiscard]] tuner::Workload workload() const;
    /// What the options say beside the target itself. Throws Failure (usage).
    [[nodiscard]] tuner::WorkloadOptions options() const;
    /// The model, read, with --dtype; --tp is refused: for what runs on one GPU.
    [[nodiscard]] models::Model whole_model() const;
    /// Of --format and what goes with it; nothing for numbers. Throws Failure (usage).
    [[nodiscard]] std::optional<checkpoints::QuantizeRequest> codes() const;
    /// What `hone export` needs to select just this: " linear --model llama-3-8b", for a shell.
    [[nodiscard]] std::string selection_words() const;

  private:
    void declare_format(const Arguments& app);
    [[nodiscard]] std::optional<checkpoints::WeightFormat> weights() const;
    [[nodiscard]] tuner::Workload captured_workload() const;
};

/// On stderr: what of a model is not understood, and what has no kernel.
void warn_of(const tuner::Workload& workload, const Console& console);

/// The place of `text`, in any case, among `names`. Throws Failure (usage) with the option, the nearest name,
/// and all.
[[nodiscard]] std::size_t chosen(std::string_view option, const std::string& text,
                                 std::span<const std::string_view> names);

/// "1,8,512", what `option` says; empty for "". Throws Failure (usage).
[[nodiscard]] std::vector<std::int64_t> tokens_from(const std::string& list, const char* option = "--tokens");

/// "RmsNorm" "dtype=bf16" "hidden=4096" "rows=16" as a problem. Throws ConfigError with what is wrong.
[[nodiscard]] Problem problem_from_words(const std::vector<std::string>& words);

/// The families of an operator, or the one of that name. Throws Failure (usage) with the nearest name.
[[nodiscard]] std::vector<const Family*> families_by_name(const std::string& name);
/// Their problems, of which an operator may share its family with others. Throws as families_by_name().
[[nodiscard]] OperatorProblems problems_by_name(const std::string& name);

/// "sm_90a". Throws Failure (usage) listing the architectures that Hone compiles for.
[[nodiscard]] Arch arch_named(const std::string& name);

}  // namespace hone::cli
