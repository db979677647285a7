#include "kernel_templates/source.h"

namespace hone {
namespace {

std::string constant(std::string_view name, std::int64_t value) {
    return "    static constexpr long long " + std::string(name) + " = " + std::to_string(value) + ";\n";
}

std::string shape_struct(const Problem& problem) {
    std::string text = "struct Shape {\n";
    for (std::size_t i = 0; i < problem.family->fields.size(); ++i) {
        const Field& field = problem.family->fields[i];
        if (is_static(field)) text += constant(field.name, problem.values[i]);
    }
    return text + "};\n";
}

std::string tuned_struct(const Candidate& candidate) {
    std::string text = "struct Tuned {\n";
    for (std::size_t i = 0; i < candidate.variant->tunables.size(); ++i) {
        text += constant(candidate.variant->tunables[i].name, candidate.config[i]);
    }
    return text + "};\n";
}

}  // namespace

std::string render_constants(const Problem& problem, const Candidate& candidate) {
    return "#pragma once\n" + shape_struct(problem) + tuned_struct(candidate);
}

std::string render_constants(const Problem& problem) { return "#pragma once\n" + shape_struct(problem); }

}  // namespace hone
