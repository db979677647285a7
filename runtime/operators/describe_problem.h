// From what the public descriptions say to problems of the families: shared by norm_problem.cpp and
// linear_problem.cpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "kernel_templates/dtype.h"
#include "kernel_templates/problem.h"

namespace hone::runtime {

/// The most that a run-time field may be in one call, under the caller's name for it.
struct Maximum {
    std::string_view name;  ///< "max_rows"
    std::int64_t value = 0;
};

/// A problem of `family` with these static fields ("dtype=bf16 hidden=4096") and the maxima as its run-time
/// ones, in declared order. Throws std::invalid_argument naming field, value and what is allowed.
[[nodiscard]] Problem describe_problem(std::string_view family, const std::string& fields,
                                       std::initializer_list<Maximum> maxima);

/// Throws std::invalid_argument for a number that is no Dtype.
[[nodiscard]] std::string_view dtype_name(Dtype dtype);
[[nodiscard]] constexpr std::string_view yes_no(bool value) { return value ? "yes" : "no"; }

}  // namespace hone::runtime
