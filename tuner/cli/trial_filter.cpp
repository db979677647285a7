#include "tuner/cli/trial_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kernel_templates/catalog.h"
#include "kernel_templates/text.h"
#include "tuner/cli/command.h"
#include "tuner/cli/targets.h"

namespace hone::cli {
namespace {

/// The operator that the words name, "" for all; the others are fields.
std::string family_of(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
        if (word.find('=') == std::string::npos) return std::string(family_named(word).name);
    }
    return {};
}

std::vector<std::string_view> fields_of(const std::string& family) {
    std::set<std::string_view> known;
    for (const Family* one : families()) {
        if (!family.empty() && one->name != family) continue;
        for (const Field& field : one->fields) known.insert(field.name);
    }
    return {known.begin(), known.end()};
}

bool has_field(const std::string& fields, const std::pair<std::string, std::string>& wanted) {
    const std::optional<std::vector<KeyValue>> pairs = parse_key_values(fields, nullptr);
    return pairs && std::ranges::any_of(*pairs, [&](const KeyValue& pair) {
               return pair.key == wanted.first && lower_case(pair.value) == wanted.second;
           });
}

}  // namespace

void TrialFilterOptions::declare(CLI::App& app) {
    app.add_option("FILTER", words, "An operator, and FIELD=VALUE that winners must have");
    app.add_option("--gpu", gpu, "Only GPUs with this in their name");
}

TrialFilter::TrialFilter(const TrialFilterOptions& options)
    : family_(family_of(options.words)), gpu_(lower_case(options.gpu)) {
    const std::vector<std::string_view> names = fields_of(family_);
    for (const std::string& word : options.words) {
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos) continue;
        const std::string name = word.substr(0, equals);
        if (std::ranges::find(names, name) == names.end()) {
            throw Failure(ExitCode::usage,
                          {"unknown_field",
                           fmt::format("no field '{}'{}: {} has {}", name, did_you_mean(name, names),
                                       family_.empty() ? "an operator" : family_, join(names)),
                           ""});
        }
        fields_.emplace_back(name, lower_case(std::string_view(word).substr(equals + 1)));
    }
}

bool TrialFilter::wants(const cache::TuningKey& key) const {
    return std::ranges::all_of(fields_,
                               [&](const auto& field) {
                                   return has_field(key.static_fields, field) ||
                                          has_field(key.dynamic_fields, field);
                               }) &&
           lower_case(key.gpu.name).find(gpu_) != std::string::npos;
}

}  // namespace hone::cli
