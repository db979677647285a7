#include "tuner/models/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernel_templates/catalog.h"
#include "kernel_templates/names.h"
#include "kernel_templates/operator_problems.h"
#include "kernel_templates/text.h"
#include "tuner/errors.h"
#include "tuner/models/step_operators.h"

namespace hone::tuner {
namespace {

Problem parsed(const Family& family, const std::string& fields) {
    std::string error;
    const std::optional<Problem> problem = parse_problem(family, fields, &error);
    if (!problem) throw ConfigError(error);
    return *problem;
}

/// One static problem at each of the sizes.
std::vector<Problem> at_sizes(const Family& family, const std::string& fields,
                              const std::vector<std::string>& sizes) {
    std::vector<Problem> problems;
    for (const std::string& size : sizes) problems.push_back(parsed(family, fields + ' ' + size));
    return problems;
}

/// An error says which layer of the model it is about.
std::vector<Problem> problems_of(const ModelOperator& op, const Family& family, const std::string& model) {
    try {
        return at_sizes(family, op.fields, op.sizes);
    } catch (const ConfigError& error) {
        throw ConfigError(fmt::format("{}: {} ({}): {}", model, op.role, op.shape, error.what()));
    }
}

void append_new(std::vector<Problem>& problems, std::vector<Problem> more) {
    for (const Problem& problem : more) {
        if (std::find(problems.begin(), problems.end(), problem) == problems.end())
            problems.push_back(problem);
    }
}

/// The dynamic fields that the text leaves out.
std::vector<const Field*> open_fields(const Family& family, const std::string& text) {
    std::string error;
    const std::optional<std::vector<KeyValue>> given = parse_key_values(text, &error);
    if (!given) throw ConfigError(error);
    std::vector<const Field*> open;
    for (const std::uint8_t index : dynamic_fields(family)) {
        const Field& field = family.fields[index];
        if (std::ranges::find(*given, field.name, &KeyValue::key) == given->end()) open.push_back(&field);
    }
    return open;
}

/// Token counts stand for one size; which ones are usual is known only where a call has no other.
void check_sizes(const Family& family, const std::vector<const Field*>& open,
                 const WorkloadOptions& options) {
    if (open.empty() || dynamic_fields(family).count == 1) return;
    if (open.size() == 1 && !options.tokens.empty()) return;
    std::vector<std::string_view> names;
    for (const Field* field : open) names.push_back(field->name);
    throw ConfigError(fmt::format("{} needs {} in its fields; --tokens stands for one of its sizes",
                                  family.name, fmt::join(names, " and ")));
}

std::vector<Problem> family_problems(const Family& family, const std::string& fields,
                                     const WorkloadOptions& options) {
    std::string text = spelled_fields(family, fields);
    if (options.dtype) text += fmt::format(" dtype={}", name(*options.dtype));
    const std::vector<const Field*> open = open_fields(family, text);
    check_sizes(family, open, options);
    if (open.empty()) return {parsed(family, text)};
    return at_sizes(family, text, sizes_at(*open[0], token_counts(options)));
}

/// "experts (fused_moe), 48 a forward pass".
std::string missing_words(const std::vector<ModelOperator>& missing) {
    std::vector<std::string> words;
    for (const ModelOperator& op : missing)
        words.push_back(fmt::format("{} ({}), {} a forward pass", op.role, op.family, op.count));
    return fmt::format("{}", fmt::join(words, "; "));
}

}  // namespace

bool has_kernel(const ModelOperator& op) { return !op.fields.empty() && find_family(op.family) != nullptr; }

Workload model_workload(const Model& model, const WorkloadOptions& options) {
    Workload workload{
        .name = model.name, .problems = {}, .tuned = {}, .without_family = {}, .warnings = model.warnings};
    for (const ModelOperator& op : operators(model, options)) {
        if (!has_kernel(op)) {
            workload.without_family.push_back(op);
            continue;
        }
        std::vector<Problem> problems = problems_of(op, *find_family(op.family), model.name);
        if (problems.empty()) continue;  // no call has as few tokens, or as many
        const bool of_steps = op.use == Use::steps || op.use == Use::chosen_in_steps;
        workload.tuned.push_back(
            {.role = op.role, .problem = problems.front(), .count = op.count, .of_steps = of_steps});
        if (op.use == Use::chosen_in_steps) append_new(workload.chosen_in_steps, problems);
        append_new(workload.problems, std::move(problems));
    }
    group_by_static_part(workload.problems);
    return workload;
}

void group_by_static_part(std::vector<Problem>& problems) {
    std::vector<Problem> parts;
    for (const Problem& problem : problems) append_new(parts, {static_part(problem)});
    const auto position = [&](const Problem& problem) {
        return std::find(parts.begin(), parts.end(), static_part(problem)) - parts.begin();
    };
    std::stable_sort(problems.begin(), problems.end(), [&](const Problem& left, const Problem& right) {
        const auto at_left = position(left);
        const auto at_right = position(right);
        return at_left != at_right ? at_left < at_right : left.values < right.values;
    });
}

void drop_chosen_in_steps(Workload& workload) {
    const auto is_chosen_in_steps = [&](const Problem& problem) {
        return std::ranges::find(workload.chosen_in_steps, problem) != workload.chosen_in_steps.end();
    };
    std::erase_if(workload.problems, is_chosen_in_steps);
    std::erase_if(workload.tuned, [&](const TunedOperator& op) { return is_chosen_in_steps(op.problem); });
    workload.chosen_in_steps.clear();
}

std::size_t drop_not_called(Workload& workload, std::span<const DeviceTraits> devices) {
    const auto is_called = [&](const TunedOperator& op) {
        return !op.of_steps || std::ranges::any_of(devices, [&](const DeviceTraits& device) {
            return is_called_in_steps(op.problem, device);
        });
    };
    std::vector<Problem> not_called;
    for (const TunedOperator& op : workload.tuned)
        if (!is_called(op)) not_called.push_back(static_part(op.problem));
    const auto is_dropped = [&](const Problem& problem) {
        return std::ranges::find(not_called, static_part(problem)) != not_called.end();
    };
    std::erase_if(workload.tuned, [&](const TunedOperator& op) { return is_dropped(op.problem); });
    return std::erase_if(workload.problems, is_dropped);
}

std::vector<std::string> warnings_of(const Workload& workload) {
    std::vector<std::string> warnings = workload.warnings;
    if (!workload.without_family.empty()) {
        warnings.push_back(
            fmt::format("{}: no kernel for {}", workload.name, missing_words(workload.without_family)));
    }
    return warnings;
}

Workload operator_workload(const std::string& op, const std::string& fields, const WorkloadOptions& options) {
    const std::vector<const Family*> named = families_named(op);
    if (named.empty()) throw ConfigError(no_operator(op));
    Workload workload{.name = op, .problems = {}, .tuned = {}, .without_family = {}};
    std::string wrong;
    for (const Family* family : named) {
        try {
            append_new(workload.problems, family_problems(*family, fields, options));
        } catch (const ConfigError& error) {
            wrong += wrong.empty() ? "" : "; ";
            wrong += named.size() == 1 ? error.what() : fmt::format("{} (as {})", error.what(), family->name);
        }
    }
    if (workload.problems.empty()) throw ConfigError(wrong);
    const std::string refusal = OperatorProblems(op).refusal(workload.problems.front());
    if (!refusal.empty()) throw ConfigError(refusal);
    return workload;
}

}  // namespace hone::tuner
