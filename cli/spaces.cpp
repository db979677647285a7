// hone spaces: families with fields and variants; for one problem and device how many configs exist and what
// forbids others.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/command_list.h"
#include "cli/targets.h"
#include "cli/value_types.h"
#include "kernel_templates/catalog.h"
#include "kernel_templates/names.h"
#include "kernel_templates/space.h"
#include "kernel_templates/text.h"
#include "tuner/errors.h"
#include "tuner/report/report_text.h"

namespace hone::cli {
namespace {

struct Options {
    std::string family;
    std::string fields;
    std::string arch = "sm_90a";
    bool calibration = false;
};

/// Sizes that most models have, for what the user leaves out.
std::int64_t usual_size(const Field& field) {
    constexpr std::array<std::pair<std::string_view, std::int64_t>, 6> by_name{{{"heads", 32},
                                                                                {"kv_heads", 8},
                                                                                {"head_dim", 128},
                                                                                {"rotary_dim", 128},
                                                                                {"q_len", 4096},
                                                                                {"kv_len", 4096}}};
    const auto* named = std::ranges::find(by_name, field.name, [](const auto& entry) { return entry.first; });
    const std::int64_t usual = named != by_name.end() ? named->second : is_static(field) ? 4096 : 16;
    return std::clamp(usual, field.min, field.max);
}

std::string usual_value(const Field& field) {
    if (field.kind != Field::Kind::choice) return fmt::format("{}", usual_size(field));
    const bool has_usual = std::ranges::find(field.choices, "bf16") != field.choices.end();
    return std::string(has_usual ? "bf16" : field.choices.front());
}

/// What the user gave, and usual sizes of a call where they are not among it; nothing given: a usual problem.
Problem problem_for(const Family& family, const std::string& given) {
    std::string error;
    const std::optional<std::vector<KeyValue>> pairs = parse_key_values(given, &error);
    if (!pairs) throw tuner::ConfigError(error);
    std::string text = spelled_fields(family, given);
    for (const Field& field : family.fields) {
        const bool has_default = field.default_value >= 0 || !field.default_as.empty();
        if (has_default || std::ranges::find(*pairs, field.name, &KeyValue::key) != pairs->end()) continue;
        if (given.empty() || !is_static(field)) text += fmt::format(" {}={}", field.name, usual_value(field));
    }
    const std::optional<Problem> problem = parse_problem(family, text, &error);
    if (!problem) throw tuner::ConfigError(error);
    return *problem;
}

std::string values_of(const Field& field) {
    if (field.kind == Field::Kind::choice) return fmt::format("{}", fmt::join(field.choices, " | "));
    return fmt::format("{} .. {}", field.min, field.max);
}

std::string default_of(const Field& field) {
    if (field.default_value < 0) return std::string(field.default_as);
    return value_text(field, field.default_value);
}

std::string_view kind_of(const Field& field) {
    switch (field.kind) {
        case Field::Kind::choice: return "choice";
        case Field::Kind::extent: return "static";
        case Field::Kind::dynamic: return "dynamic";
        case Field::Kind::free: return "free";
    }
    return "static";
}

Json fields_json(const Family& family) {
    Json fields = Json::array();
    for (const Field& field : family.fields) {
        const std::string usual = default_of(field);
        fields.push_back({{"name", field.name},
                          {"kind", kind_of(field)},
                          {"meaning", field.meaning},
                          {"values", values_of(field)},
                          {"default", usual.empty() ? Json(nullptr) : Json(usual)}});
    }
    return fields;
}

/// What measurements add to the time that is predicted for candidates with each value of a tunable, in
/// percent; where it is read with another one, of those that have `given` of that.
std::vector<double> percents(const Correction& correction, const Variant& variant, std::size_t tunable,
                             std::int64_t given) {
    std::vector<double> all;
    for (const std::int64_t value : variant.tunables[tunable].values.span())
        all.push_back(100 * (correction.factor(tunable, value, given) - 1));
    return all;
}

/// The values of the tunable that one is read with; 0 alone where there is none.
std::vector<std::int64_t> given_values(const Variant& variant, std::size_t tunable) {
    const auto found =
        std::ranges::find(variant.tunables, variant.tunables[tunable].read_with, &Tunable::name);
    if (found == variant.tunables.end()) return {0};
    return {found->values.span().begin(), found->values.span().end()};
}

/// A list beside the values; where the tunable is read with another one, such a list by value of that.
Json percents_json(const Correction& correction, const Variant& variant, std::size_t tunable) {
    if (variant.tunables[tunable].read_with.empty()) return percents(correction, variant, tunable, 0);
    Json json = Json::object();
    for (const std::int64_t given : given_values(variant, tunable))
        json[std::to_string(given)] = percents(correction, variant, tunable, given);
    return json;
}

Json variant_json(const Variant& variant, const SpaceCount& count, const Correction& correction) {
    Json json{{"name", variant.name},
              {"summary", variant.summary},
              {"source", variant.source},
              {"min_arch", to_string(variant.min_arch)},
              {"template_hash", template_hash(variant)},
              {"declared", count.declared},
              {"allowed", count.allowed},
              {"rejected_by_architecture", count.rejected_by.empty() ? 0 : count.rejected_by.back()},
              {"tunables", Json::array()},
              {"constraints", Json::array()}};
    for (std::size_t i = 0; i < variant.tunables.size(); ++i) {
        const Tunable& tunable = variant.tunables[i];
        const auto values = tunable.values.span();
        json["tunables"].push_back({{"name", tunable.name},
                                    {"meaning", tunable.meaning},
                                    {"values", std::vector<std::int64_t>(values.begin(), values.end())},
                                    {"read_with", tunable.read_with},
                                    {"correction_percent", percents_json(correction, variant, i)}});
    }
    for (std::size_t i = 0; i < variant.constraints.size(); ++i) {
        json["constraints"].push_back({{"reason", variant.constraints[i].reason},
                                       {"rejects", i < count.rejected_by.size() ? count.rejected_by[i] : 0}});
    }
    return json;
}

std::string variant_text(const Variant& variant, const SpaceCount& count, const tuner::Page& page) {
    std::string text =
        fmt::format("  {}: {}\n    from {}, {} of {} configs allowed\n", variant.name, variant.summary,
                    to_string(variant.min_arch), count.allowed, count.declared);
    tuner::Table tunables({{"tunable"}, {"values"}, {"meaning"}});
    for (const Tunable& tunable : variant.tunables) {
        tunables.add({std::string(tunable.name), fmt::format("{}", fmt::join(tunable.values.span(), " ")),
                      std::string(tunable.meaning)});
    }
    if (!tunables.empty()) text += tunables.render(page, "      ");
    for (std::size_t i = 0; i < variant.constraints.size(); ++i) {
        const std::size_t rejects = i < count.rejected_by.size() ? count.rejected_by[i] : 0;
        text += fmt::format("      rule: {} (forbids {} here)\n", variant.constraints[i].reason, rejects);
    }
    return text + "\n";
}

/// One line a tunable, "threads: 64 -4.2 %, 128 -4.4 %", or a line for each value of the one that it is read
/// with, "tile_n (swapped=1): 8 -3.0 %".
std::string correction_text(const Variant& variant, const Correction& correction) {
    std::string text = "      measured, on the predicted time:\n";
    for (std::size_t i = 0; i < variant.tunables.size(); ++i) {
        const Tunable& tunable = variant.tunables[i];
        for (const std::int64_t given : given_values(variant, i)) {
            const std::vector<double> added = percents(correction, variant, i, given);
            std::vector<std::string> values;
            for (std::size_t k = 0; k < added.size(); ++k)
                values.push_back(fmt::format("{} {:+.1f} %", tunable.values.span()[k], added[k]));
            const std::string beside =
                tunable.read_with.empty() ? "" : fmt::format(" ({}={})", tunable.read_with, given);
            text += fmt::format("        {}{}: {}\n", tunable.name, beside, fmt::join(values, ", "));
        }
    }
    return text + "\n";
}

void add_family(const Family& family, const Options& options, const DeviceTraits& traits,
                const tuner::Page& page, Outcome& outcome) {
    const Problem problem = problem_for(family, options.fields);
    Json json{{"name", family.name},
              {"summary", family.summary},
              {"counted_for", to_string(problem)},
              {"fields", fields_json(family)},
              {"variants", Json::array()}};
    tuner::Table fields({{"field"}, {"kind"}, {"values"}, {"default"}, {"meaning"}});
    for (const Field& field : family.fields) {
        fields.add({std::string(field.name), std::string(kind_of(field)), values_of(field), default_of(field),
                    std::string(field.meaning)});
    }
    outcome.text += fmt::format("{}: {}\n{}\n  counted for {} on {}\n\n", family.name, family.summary,
                                fields.render(page, "  "), to_string(problem), traits.name);
    for (const Variant* variant : family.variants) {
        const SpaceCount count = count_space(problem, *variant, traits);
        const Correction correction(problem, *variant, traits);
        json["variants"].push_back(variant_json(*variant, count, correction));
        outcome.text += variant_text(*variant, count, page);
        if (options.calibration) outcome.text += correction_text(*variant, correction);
    }
    outcome.data["families"].push_back(std::move(json));
}

/// An operator's families that have such fields, or all of this build. Throws ConfigError where none has.
std::vector<const Family*> described_families(const Options& options) {
    if (options.family.empty()) return {families().begin(), families().end()};
    std::vector<const Family*> described;
    std::string wrong;
    for (const Family* family : families_by_name(options.family)) {
        try {
            static_cast<void>(problem_for(*family, options.fields));
            described.push_back(family);
        } catch (const tuner::ConfigError& error) {
            wrong += (wrong.empty() ? "" : "; ") + std::string(error.what());
        }
    }
    if (described.empty()) throw tuner::ConfigError(wrong);
    return described;
}

Outcome spaces(const Options& options, const Console& console) {
    const DeviceTraits traits = *representative_device(arch_named(options.arch));
    Outcome outcome{.data = {{"arch", options.arch}, {"device", traits.name}, {"families", Json::array()}}};
    if (options.family.empty() && !options.fields.empty()) {
        throw Failure::usage("no_target", "--fields needs an operator", "hone spaces rmsnorm --fields ...");
    }
    for (const Family* family : described_families(options))
        add_family(*family, options, traits, console.page, outcome);
    return outcome;
}

}  // namespace

Runner declare_spaces(const Arguments& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("OPERATOR", options->family, "Only this operator, or family").type_name("");
    app.add_option("--fields", options->fields, "Count for this problem");
    app.add_option("--arch", options->arch, "Count for this architecture (default sm_90a)")
        .type_name(arch_type());
    app.add_flag("--calibration", options->calibration,
                 "Say what measurements add to the predicted time, by value of a tunable");
    return [options](const Console& console) { return spaces(*options, console); };
}

}  // namespace hone::cli
