// From what the public descriptions say to problems of the families.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "kernel_templates/dtype.h"
#include "kernel_templates/problem.h"
#include "runtime/operators/words.h"

namespace hone::runtime {

/// A static field of a family: its word, or its number.
struct FieldValue {
    std::string_view name;
    std::variant<std::string_view, std::int64_t> value;
};

/// The most that a run-time field may be in one call, under the caller's name for it.
struct Maximum {
    std::string_view name;  ///< "max_rows"
    std::int64_t value = 0;
};

/// A problem of `family` with these static fields and the maxima as its run-time ones, in declared order;
/// fields that are left out, and run-time ones behind the maxima, have their defaults. Throws
/// std::invalid_argument naming field, value and what is allowed.
[[nodiscard]] Problem describe_problem(std::string_view family, std::initializer_list<FieldValue> fields,
                                       std::initializer_list<Maximum> maxima);

/// The same problem with a second weight behind a gate. Throws std::invalid_argument for what has none.
[[nodiscard]] Problem gated(Problem problem);

/// What an operator that consists of layers calls one of them.
struct LayerNames {
    std::string_view family;  ///< "linear"
    std::string_view name;    ///< "fused_ffn"
    std::string_view in;      ///< "hidden"
    std::string_view out;
};

/// A layer's error as one of the operator that has it, whose caller knows its own fields alone.
[[nodiscard]] std::string error_of_operator(std::string_view error, const LayerNames& names);

/// Throws std::invalid_argument for a number that is no Dtype.
[[nodiscard]] std::string_view dtype_name(Dtype dtype);
[[nodiscard]] constexpr std::string_view yes_no(bool value) { return value ? "yes" : "no"; }

}  // namespace hone::runtime
