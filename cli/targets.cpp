#include "cli/targets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "checkpoints/pack/request.h"
#include "cli/command.h"
#include "cli/shell.h"
#include "cli/value_types.h"
#include "kernel_templates/names.h"
#include "kernel_templates/text.h"
#include "tuner/errors.h"
#include "tuner/models/captured.h"
#include "tuner/models/known_models.h"

namespace hone::cli {
namespace {

std::optional<Dtype> parsed_dtype(const std::string& text) {
    if (text.empty()) return std::nullopt;
    const std::string word = dtype_word(text);
    const std::optional<Dtype> dtype = dtype_from_name(word);
    constexpr std::array<std::string_view, 3> names{"fp32", "fp16", "bf16"};
    if (dtype && std::ranges::find(names, word) != names.end()) return dtype;
    throw Failure::usage("unknown_dtype", fmt::format("--dtype: no dtype '{}'{}: allowed is {}", text,
                                                      did_you_mean(text, names), fmt::join(names, ", ")));
}

constexpr std::string_view dense = "dense";

/// Those of codes in their order, and dense.
std::span<const std::string_view> weight_format_names() {
    static constexpr auto names = [] {
        std::array<std::string_view, quant_format_names.size() + 1> all{};
        *std::ranges::copy(quant_format_names, all.begin()).out = dense;
        return all;
    }();
    return names;
}

void keep_only(OperatorProblems wanted, tuner::Workload& workload) {
    for (const Problem& problem : workload.problems)
        wanted.consider(problem.family->name, static_text(problem));
    const auto other = [&](const Problem& problem) {
        return !wanted.contains(problem.family->name, static_text(problem));
    };
    std::erase_if(workload.problems, other);
    std::erase_if(workload.tuned, [&](const tuner::TunedOperator& op) { return other(op.problem); });
    std::erase_if(workload.captured, [&](const tuner::CapturedUse& use) { return other(use.problem); });
    workload.without_family.clear();
}

}  // namespace

void Target::declare(const Arguments& app) {
    app.add_option("MODEL", model, "A known model, or a path to a Hugging Face config.json").type_name("");
    app.add_option("--op", op,
                   "One operator, RmsNorm or FusedFfn, say, or a family as `hone spaces` lists them (linear: "
                   "Linear and FusedFfn): with --fields, or those of MODEL or --captured")
        .type_name(operator_type);
    app.add_option("--fields", fields, "The operator's fields: \"dtype=bf16 hidden=4096 residual=yes\"");
    app.add_option(
        "--tokens", tokens,
        "Tokens of a forward pass to tune at (default: 1, 2, 4 ... 8192, and of linear layers 5, 6 and 7 "
        "fourths of 256, 512 and 1024); with --op and --fields the size that these leave open");
    declare_captured(
        app, "What a process with HONE_CAPTURE=FILE ran, those problems first that took the most time");
    declare_variant(app);
}

Argument Target::declare_captured(const Arguments& app, const std::string& says) {
    return app.add_option("--captured", captured, says).type_name(file_type);
}

void Target::declare_variant(const Arguments& app) {
    app.add_option("--dtype", dtype, "Element type instead of the model's").type_name(dtype_type);
    app.add_option("--tp", tensor_parallel, "Tensor-parallel GPUs that share heads and feed-forward");
    declare_format(app);
}

Argument Target::declare_model_and_variant(const Arguments& app, const std::string& says) {
    Argument option = app.add_option("--model", model, says).type_name(model_type);
    declare_variant(app);
    return option;
}

Argument Target::declare_model_option(const Arguments& app, const std::string& says) {
    Argument option = declare_model_and_variant(app, says);
    for (const char* of_model : {"--dtype", "--tp", "--format", "--group", "--zeros", "--lm-head"})
        app.get(of_model).needs(option);
    return option;
}

void Target::declare_format(const Arguments& app) {
    app.add_option("--format", format,
                   "Weights of the model's linear layers: w4a16, w8a16, w8a8, fp8, or dense: of its dtype "
                   "(default: as quantization_config of its config.json says, else dense)")
        .type_name(one_of(weight_format_names()));
    app.add_option("--group", group,
                   "With --format: columns that share a scale, as `hone quantize` takes it (default 128 "
                   "with w4a16, else 0: whole rows)");
    app.add_flag("--zeros", zeros, "With --format w4a16: zero points");
    app.add_flag("--lm-head", lm_head, "With --format: the language head too");
}

std::optional<checkpoints::WeightFormat> Target::weights() const {
    const std::string_view given = group ? "--group" : zeros ? "--zeros" : lm_head ? "--lm-head" : "";
    if ((format.empty() || format == dense) && !given.empty()) {
        throw Failure::usage("bad_option", fmt::format("{} goes with --format {}", given,
                                                       fmt::join(quant_format_names, ", ")));
    }
    if (format.empty()) return std::nullopt;
    if (model.empty()) {
        throw Failure::usage("no_target", "--format goes with a MODEL; of one operator --fields says it",
                             "--op quantized_linear --fields \"format=w4a16 ...\"");
    }
    if (format == dense) return checkpoints::WeightFormat{};
    const auto codes = static_cast<QuantFormat>(chosen("--format", format, weight_format_names()));
    return checkpoints::WeightFormat{.format = codes,
                                     .group = group.value_or(checkpoints::usual_group(codes)),
                                     .zeros = zeros,
                                     .lm_head = lm_head};
}

tuner::Workload Target::workload() const {
    if (!captured.empty() && !model.empty())
        throw Failure::usage("no_target", "--captured says itself what to tune: not with a MODEL");
    if (!names_many() && op.empty()) {
        throw Failure::usage("no_target", "give a MODEL, --op or --captured",
                             fmt::format("known models: {}", fmt::join(tuner::known_models(), ", ")));
    }
    if (!fields.empty() && (op.empty() || names_many()))
        throw Failure::usage("no_target", "--fields goes with --op and without a MODEL or --captured");
    if (!names_many() && tensor_parallel != 1) {
        throw Failure::usage(
            "bad_option", fmt::format("--tp {} divides a MODEL's sizes; of one operator --fields says them",
                                      tensor_parallel));
    }
    if (!names_many()) return tuner::operator_workload(op, fields, options());
    tuner::Workload workload =
        captured.empty() ? tuner::model_workload(tuner::read_model(model), options()) : captured_workload();
    if (!op.empty()) keep_only(problems_by_name(op), workload);
    return workload;
}

tuner::WorkloadOptions Target::options() const {
    return {.tokens = tokens_from(tokens),
            .dtype = parsed_dtype(dtype),
            .tensor_parallel = tensor_parallel,
            .weights = weights()};
}

tuner::Workload Target::captured_workload() const {
    const tuner::WorkloadOptions asked = options();
    if (!asked.tokens.empty() || asked.dtype || asked.tensor_parallel != 1) {
        throw Failure::usage(
            "bad_option",
            "--captured says sizes and element types itself: not with --tokens, --dtype or --tp");
    }
    return tuner::captured_workload(captured);
}

models::Model Target::whole_model() const {
    if (tensor_parallel != 1)
        throw Failure::usage("bad_option",
                             fmt::format("--tp {}: a step is measured on one GPU", tensor_parallel));
    models::Model whole = tuner::read_model(model);
    whole.dtype = parsed_dtype(dtype).value_or(whole.dtype);
    return whole;
}

std::optional<checkpoints::QuantizeRequest> Target::codes() const {
    const std::optional<checkpoints::WeightFormat> chosen = weights();
    if (!chosen || !chosen->format) return std::nullopt;
    return checkpoints::QuantizeRequest{
        .format = *chosen->format, .group = group, .zeros = zeros, .lm_head = lm_head};
}

std::string Target::selection_words() const {
    std::string words = op.empty() ? "" : ' ' + quoted_for_shell(op);
    if (!captured.empty()) return words + option_words("--captured", captured);
    if (model.empty()) return words + (fields.empty() ? "" : ' ' + fields);
    words += option_words("--model", model) + option_words("--dtype", dtype);
    if (tensor_parallel != 1) words += fmt::format(" --tp {}", tensor_parallel);
    words += option_words("--format", format);
    if (group) words += fmt::format(" --group {}", *group);
    if (zeros) words += " --zeros";
    if (lm_head) words += " --lm-head";
    return words;
}

void warn_of(const tuner::Workload& workload, const Console& console) {
    for (const std::string& warning : tuner::warnings_of(workload)) console.warn(warning);
}

std::size_t chosen(std::string_view option, const std::string& text,
                   std::span<const std::string_view> names) {
    const auto found = std::ranges::find(names, lower_case(text));
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    throw Failure::usage("bad_option", fmt::format("{}: no '{}'{}: allowed is {}", option, text,
                                                   did_you_mean(text, names), fmt::join(names, ", ")));
}

std::vector<std::int64_t> tokens_from(const std::string& list, const char* option) {
    std::vector<std::int64_t> tokens;
    std::string_view rest = list;
    while (!rest.empty()) {
        const std::string_view word = rest.substr(0, rest.find(','));
        const std::optional<std::int64_t> value = parse_integer(word);
        if (!value)
            throw Failure::usage("bad_tokens", fmt::format("{}: '{}' is no whole number", option, word),
                                 fmt::format("{} 1,8,512", option));
        tokens.push_back(*value);
        rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    }
    return tokens;
}

Problem problem_from_words(const std::vector<std::string>& words) {
    std::string error;
    const std::optional<Problem> problem = read_problem(fmt::format("{}", fmt::join(words, " ")), &error);
    if (!problem) throw tuner::ConfigError(error);
    return *problem;
}

OperatorProblems problems_by_name(const std::string& name) {
    static_cast<void>(families_by_name(name));
    return OperatorProblems(name);
}

std::vector<const Family*> families_by_name(const std::string& name) {
    std::vector<const Family*> found = families_named(name);
    if (found.empty())
        throw Failure::usage("unknown_operator", no_operator(name), "hone spaces describes each");
    return found;
}

Arch arch_named(const std::string& name) {
    std::vector<std::string> names;
    for (const Arch& arch : supported_archs()) {
        names.push_back(to_string(arch));
        if (names.back() == name) return arch;
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    throw Failure::usage("unknown_arch", fmt::format("no architecture '{}'{}: Hone compiles for {}", name,
                                                     did_you_mean(name, views), fmt::join(names, ", ")));
}

}  // namespace hone::cli
