#include "runtime/operators/describe_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "kernel_templates/catalog.h"

namespace hone::runtime {
namespace {

std::string text_of(const FieldValue& field) {
    return std::visit([&](const auto& value) { return fmt::format(" {}={}", field.name, value); },
                      field.value);
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
