// hone spaces: families with fields and variants; for one problem and device how many configs exist and what
// forbids others.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"
#include "tuner/cli/command_list.h"
#include "tuner/cli/targets.h"
#include "tuner/errors.h"
#include "tuner/report_text.h"

namespace hone::cli {
namespace {

struct Options {
    std::string family;
    std::string fields;
    std::string arch = "sm_90a";
};

/// A usual problem for counting, where the user names none.
std::string usual_fields(const Family& family) {
    constexpr std::int64_t usual_extent = 4096;
    constexpr std::int64_t usual_dynamic = 16;
    std::vector<std::string> fields;
    for (const Field& field : family.fields) {
        if (field.default_value >= 0) continue;
        if (field.kind == Field::Kind::choice) {
            const bool has_usual =
                std::find(field.choices.begin(), field.choices.end(), "bf16") != field.choices.end();
            fields.push_back(fmt::format("{}={}", field.name, has_usual ? "bf16" : field.choices.front()));
            continue;
        }
        const std::int64_t usual = field.kind == Field::Kind::dynamic ? usual_dynamic : usual_extent;
        fields.push_back(fmt::format("{}={}", field.name, std::clamp(usual, field.min, field.max)));
    }
    return fmt::format("{}", fmt::join(fields, " "));
}

Problem problem_for(const Family& family, const std::string& given) {
    std::string error;
    std::string text = given.empty() ? usual_fields(family) : given;
    if (const int dynamic = dynamic_field(family); dynamic >= 0) {
        const std::string key = fmt::format("{}=", family.fields[static_cast<std::size_t>(dynamic)].name);
        if (text.find(key) == std::string::npos) text += fmt::format(" {}16", key);
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
    if (field.default_value < 0) return {};
    if (field.kind != Field::Kind::choice) return fmt::format("{}", field.default_value);
    return std::string(field.choices[static_cast<std::size_t>(field.default_value)]);
}

std::string_view kind_of(const Field& field) {
    switch (field.kind) {
        case Field::Kind::choice: return "choice";
        case Field::Kind::extent: return "static";
        case Field::Kind::dynamic: return "dynamic";
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

Json variant_json(const Variant& variant, const SpaceCount& count) {
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
    for (const Tunable& tunable : variant.tunables) {
        const auto values = tunable.values.span();
        json["tunables"].push_back({{"name", tunable.name},
                                    {"meaning", tunable.meaning},
                                    {"values", std::vector<std::int64_t>(values.begin(), values.end())}});
    }
    for (std::size_t i = 0; i < variant.constraints.size(); ++i) {
        json["constraints"].push_back({{"reason", variant.constraints[i].reason},
                                       {"rejects", i < count.rejected_by.size() ? count.rejected_by[i] : 0}});
    }
    return json;
}

std::string variant_text(const Variant& variant, const SpaceCount& count, bool colour) {
    std::string text =
        fmt::format("  {}: {}\n    from {}, {} of {} configs allowed\n", variant.name, variant.summary,
                    to_string(variant.min_arch), count.allowed, count.declared);
    tuner::Table tunables({{"tunable"}, {"values"}, {"meaning"}});
    for (const Tunable& tunable : variant.tunables) {
        tunables.add({std::string(tunable.name), fmt::format("{}", fmt::join(tunable.values.span(), " ")),
                      std::string(tunable.meaning)});
    }
    if (!tunables.empty()) text += tunables.render(colour, "      ");
    for (std::size_t i = 0; i < variant.constraints.size(); ++i) {
        const std::size_t rejects = i < count.rejected_by.size() ? count.rejected_by[i] : 0;
        text += fmt::format("      rule: {} (forbids {} here)\n", variant.constraints[i].reason, rejects);
    }
    return text + "\n";
}

void add_family(const Family& family, const Options& options, const DeviceTraits& traits, bool colour,
                Outcome& outcome) {
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
                                fields.render(colour, "  "), to_string(problem), traits.name);
    for (const Variant* variant : family.variants) {
        const SpaceCount count = count_space(problem, *variant, traits);
        json["variants"].push_back(variant_json(*variant, count));
        outcome.text += variant_text(*variant, count, colour);
    }
    outcome.data["families"].push_back(std::move(json));
}

Outcome spaces(const Options& options, const Console& console) {
    const DeviceTraits traits = *representative_device(arch_named(options.arch));
    Outcome outcome{.data = {{"arch", options.arch}, {"device", traits.name}, {"families", Json::array()}}};
    if (options.family.empty() && !options.fields.empty()) {
        throw Failure(ExitCode::usage,
                      {"no_target", "--fields needs an operator", "hone spaces rmsnorm --fields ..."});
    }
    if (!options.family.empty()) {
        add_family(family_named(options.family), options, traits, console.stdout_colour, outcome);
        return outcome;
    }
    for (const Family* family : families())
        add_family(*family, options, traits, console.stdout_colour, outcome);
    return outcome;
}

}  // namespace

Runner declare_spaces(CLI::App& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("FAMILY", options->family, "Only this operator");
    app.add_option("--fields", options->fields, "Count for this problem");
    app.add_option("--arch", options->arch, "Count for this architecture (default sm_90a)");
    return [options](const Console& console) { return spaces(*options, console); };
}

}  // namespace hone::cli
