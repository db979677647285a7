// The formats of quantized weights, which packing them and multiplying with them have in common.
#pragma once

#include <string_view>

#include "kernel_templates/enums.h"

namespace hone {

/// Codes stand in blocks of 64 x 64, which have no rows.
[[nodiscard]] constexpr bool is_packed(QuantFormat format) {
    return format == QuantFormat::w4a16 || format == QuantFormat::w8a16;
}

/// "w4a16". Throws std::invalid_argument for a number that is no format.
[[nodiscard]] std::string_view name(QuantFormat format);

}  // namespace hone
