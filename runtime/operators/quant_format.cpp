#include "hone/quant_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

namespace hone {

std::string_view name(QuantFormat format) {
    const auto number = static_cast<std::size_t>(format);
    if (number < quant_format_names.size()) return quant_format_names[number];
    throw std::invalid_argument(
        fmt::format("format is {}; allowed: {}", number, fmt::join(quant_format_names, ", ")));
}

}  // namespace hone
