// What families whose products share norms (shared_norm_linear, shared_norm_quantized_linear) say of their
// problems: what they refuse, how exact they are, and what they read and write beside the products' tensors.
#pragma once

#include <string>
#include <string_view>

#include "kernel_templates/family.h"
#include "kernel_templates/shared_norm_linear/slots.h"

namespace hone::shared_norm_linear {

/// What is wrong with such a problem beside what its product is refused for; or empty.
template <class P>
[[nodiscard]] std::string wrong_sharing(const P& p) {
    const auto no_whole_slots = [](std::string_view name, std::int64_t columns) -> std::string {
        if (columns % linear::square_columns == 0) return {};
        return std::string(name) + " is " + std::to_string(columns) + "; allowed: multiples of " +
               std::to_string(linear::square_columns) + ", whose squares are added up together";
    };
    if (p.dtype != Dtype::bf16)
        return "dtype=" + std::string(name(p.dtype)) +
               ": results times a norm's weight need a range that it may lack; allowed: bf16";
    if (p.next_norm && p.gated) return "next_norm=yes has no gate; allowed with gated=no";
    std::string error = p.norm ? no_whole_slots("in", p.in) : std::string();
    return error.empty() && p.next_norm ? no_whole_slots("out", p.out) : error;
}

/// Results, and these times a weight of about 1, are as exact as the product's `result`. A factor of about 1
/// in front of a gate, and the weight behind, amplify what sums have lost.
[[nodiscard]] inline Tolerance tolerance_of_results(const Tolerance& result) {
    return {.relative_l2 = result.relative_l2, .max_abs = 4 * result.max_abs, .max_rel = result.max_rel};
}
/// Squares are sums of a slot's, of numbers that are not rounded.
[[nodiscard]] inline Tolerance tolerance_of_squares(const Tolerance& result) {
    return {.relative_l2 = 2 * result.relative_l2,
            .max_abs = 4 * result.max_abs * static_cast<int>(linear::square_columns),
            .max_rel = 4 * result.max_rel};
}

/// What is read and written beside the product's tensors.
template <class P>
[[nodiscard]] double bytes_of_sharing(const P& p) {
    const auto tokens = static_cast<double>(p.tokens);
    double bytes = p.norm ? 4.0 * tokens * static_cast<double>(p.x_slots()) : 0.0;
    if (p.next_norm)
        bytes +=
            2.0 * (tokens + 1.0) * static_cast<double>(p.out) + 4.0 * tokens * static_cast<double>(p.slots());
    return bytes;
}

}  // namespace hone::shared_norm_linear
