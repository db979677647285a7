#include "cli/selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/stored.h"
#include "cli/value_types.h"
#include "kernel_templates/catalog.h"
#include "kernel_templates/names.h"
#include "kernel_templates/text.h"

namespace hone::cli {
namespace {

/// The families that the words name, all for none.
std::vector<const Family*> families_of(const std::vector<std::string>& words) {
    std::vector<const Family*> found;
    for (const std::string& word : words) {
        if (word.find('=') != std::string::npos) continue;
        for (const Family* family : families_by_name(word)) found.push_back(family);
    }
    if (found.empty()) found.assign(families().begin(), families().end());
    return found;
}

/// As the families that have this field spell its value. Throws Failure where none has it.
std::pair<std::string, std::string> field_of(const std::string& word,
                                             const std::vector<const Family*>& from) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    std::set<std::string_view> known;
    for (const Family* family : from) {
        for (const Field& field : family->fields) known.insert(field.name);
        if (field_index(*family, name) >= 0)
            return {name, spelled_fields(*family, word).substr(std::min(equals + 1, word.size()))};
    }
    const std::vector<std::string_view> names(known.begin(), known.end());
    throw Failure::usage("unknown_field",
                         fmt::format("no field '{}'{}: {} has {}", name, did_you_mean(name, names),
                                     from.size() == 1 ? from.front()->name : "an operator", join(names)));
}

bool has_field(const std::string& fields, const std::pair<std::string, std::string>& wanted) {
    const std::optional<std::vector<KeyValue>> pairs = parse_key_values(fields, nullptr);
    return pairs && std::ranges::any_of(*pairs, [&](const KeyValue& pair) {
               return pair.key == wanted.first && pair.value == wanted.second;
           });
}

}  // namespace

void Selection::declare(const Arguments& app) {
    declare_words(app);
    declare_gpu(app);
    declare_model(app);
}

void Selection::declare_words(const Arguments& app) {
    app.add_option("FILTER", words, "An operator, and FIELD=VALUE that results must have")
        .type_name(operator_type);
}

void Selection::declare_gpu(const Arguments& app) {
    app.add_option("--gpu", gpu, "Only GPUs with this in their name");
}

void Selection::declare_model(const Arguments& app) {
    const Argument model = target.declare_model_option(app, "Only what a model's layers run, at any size");
    target.declare_captured(app, "Only what a process with HONE_CAPTURE=FILE ran, at any size")
        .excludes(model);
}

Selected::Selected(const Selection& selection)
    : gpu_(lower_case(selection.gpu)), of_model_(selection.target.names_many()) {
    const std::vector<const Family*> named = families_of(selection.words);
    for (const std::string& word : selection.words) {
        if (word.find('=') != std::string::npos) {
            fields_.push_back(field_of(word, named));
        } else {
            operators_.push_back(problems_by_name(word));
        }
    }
    if (!of_model_) return;
    for (const Problem& problem : selection.target.workload().problems) {
        const std::string fields = static_text(problem);
        model_problems_.emplace(problem.family->name, fields);
        for (OperatorProblems& one : operators_) one.consider(problem.family->name, fields);
    }
}

void Selected::consider(const cache::Trial& trial) {
    if (of_model_) return;  // its problems are known
    for (OperatorProblems& one : operators_) one.consider(trial.key.family, trial.key.static_fields);
}

bool Selected::contains(const cache::Trial& trial) const {
    const cache::TuningKey& key = trial.key;
    return is_of_operators(key) && has_fields(key) &&
           lower_case(place_of(trial)).find(gpu_) != std::string::npos &&
           (!of_model_ || model_problems_.contains({key.family, key.static_fields}));
}

bool Selected::is_of_operators(const cache::TuningKey& key) const {
    const auto has = [&](const OperatorProblems& one) { return one.contains(key.family, key.static_fields); };
    return operators_.empty() || std::ranges::any_of(operators_, has);
}

bool Selected::has_fields(const cache::TuningKey& key) const {
    return std::ranges::all_of(fields_, [&](const auto& field) {
        return has_field(key.static_fields, field) || has_field(key.dynamic_fields, field);
    });
}

}  // namespace hone::cli
