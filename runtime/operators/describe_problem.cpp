#include "runtime/operators/describe_problem.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernel_templates/catalog.h"

namespace hone::runtime {

Problem describe_problem(std::string_view family, const std::string& fields,
                         std::initializer_list<Maximum> maxima) {
    const Family* found = find_family(family);
    if (found == nullptr) throw std::invalid_argument(fmt::format("this build has no family {}", family));
    std::string text = fields;
    const FieldIndices run_time = run_time_fields(*found);
    for (std::size_t i = 0; i < run_time.count; ++i) {
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
