#include "runtime/operators/describe_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernel_templates/catalog.h"

namespace hone::runtime {
namespace {

std::string text_of(const FieldValue& field) {
    return std::visit([&](const auto& value) { return fmt::format(" {}={}", field.name, value); },
                      field.value);
}

/// Wherever an error speaks of the field: "field 'in' has", "does not divide in=96", "out x in is".
void rename_field(std::string& text, std::string_view from, std::string_view to) {
    constexpr std::pair<std::string_view, std::string_view> places[] = {
        {"'", "'"}, {" ", "="}, {"x ", " "}, {" ", " x "}};
    for (const auto& [before, behind] : places) {
        const std::string wanted = fmt::format("{}{}{}", before, from, behind);
        const std::string known = fmt::format("{}{}{}", before, to, behind);
        for (std::size_t at = text.find(wanted); at != std::string::npos;
             at = text.find(wanted, at + known.size()))
            text.replace(at, wanted.size(), known);
    }
}

}  // namespace

Problem describe_problem(std::string_view family, std::initializer_list<FieldValue> fields,
                         std::initializer_list<Maximum> maxima) {
    const Family* found = find_family(family);
    if (found == nullptr) throw std::invalid_argument(fmt::format("this build has no family {}", family));
    std::string text;
    for (const FieldValue& field : fields) text += text_of(field);
    const FieldIndices run_time = run_time_fields(*found);
    for (std::size_t i = 0; i < std::min(run_time.count, maxima.size()); ++i) {
        const Field& field = found->fields[run_time[i]];
        const Maximum& maximum = std::data(maxima)[i];
        if (maximum.value < field.min || maximum.value > field.max) {
            throw std::invalid_argument(fmt::format("{}: {} is {}; allowed: {} to {}", family, maximum.name,
                                                    maximum.value, field.min, field.max));
        }
        text += fmt::format(" {}={}", field.name, maximum.value);
    }
    std::string error;
    const std::optional<Problem> problem = parse_problem(*found, text, &error);
    if (!problem) throw std::invalid_argument(fmt::format("{}: {}", family, error));
    return *problem;
}

Problem gated(Problem problem) {
    problem = with(problem, static_cast<std::size_t>(field_index(*problem.family, "gated")), 1);
    const std::string error = problem.family->validate(problem);
    if (!error.empty()) throw std::invalid_argument(fmt::format("{}: {}", problem.family->name, error));
    return problem;
}

std::string error_of_operator(std::string_view error, const LayerNames& names) {
    const std::string family = fmt::format("{}: ", names.family);
    if (error.starts_with(family)) error.remove_prefix(family.size());
    std::string text = fmt::format("{}: {}", names.name, error);
    rename_field(text, "in", names.in);
    rename_field(text, "out", names.out);
    return text;
}

std::string_view dtype_name(Dtype dtype) {
    switch (dtype) {
        case Dtype::fp32:
        case Dtype::fp16:
        case Dtype::bf16:
        case Dtype::int8:
        case Dtype::fp8_e4m3: return name(dtype);  // the family says which of them it takes
    }
    throw std::invalid_argument(fmt::format("dtype is {}, which is no Dtype", static_cast<int>(dtype)));
}

}  // namespace hone::runtime
