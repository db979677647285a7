#include "runtime/describe_problem.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernel_templates/catalog.h"

namespace hone::runtime {

Problem describe_problem(std::string_view family, const std::string& fields, Maximum maximum) {
    const Family* found = find_family(family);
    if (found == nullptr) throw std::invalid_argument(fmt::format("this build has no family {}", family));
    const Field& dynamic = found->fields[static_cast<std::size_t>(dynamic_field(*found))];
    if (maximum.value < dynamic.min || maximum.value > dynamic.max) {
        throw std::invalid_argument(fmt::format("{}: {} is {}; allowed: {} to {}", family, maximum.name,
                                                maximum.value, dynamic.min, dynamic.max));
    }
    std::string error;
    const std::optional<Problem> problem =
        parse_problem(*found, fmt::format("{} {}={}", fields, dynamic.name, maximum.value), &error);
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
