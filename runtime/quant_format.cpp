#include "hone/quant_format.h"

#include <fmt/format.h>

#include <stdexcept>

namespace hone {

std::string_view name(QuantFormat format) {
    switch (format) {
        case QuantFormat::w4a16: return "w4a16";
        case QuantFormat::w8a16: return "w8a16";
        case QuantFormat::w8a8: return "w8a8";
        case QuantFormat::fp8: return "fp8";
    }
    throw std::invalid_argument(
        fmt::format("format is {}; allowed: w4a16, w8a16, w8a8, fp8", static_cast<int>(format)));
}

}  // namespace hone
