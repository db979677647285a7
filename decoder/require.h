// How numbers out of their range are refused.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "decoder/error.h"

namespace hone::decoder {

/// Throws DecoderError, "context is -1; allowed: from 0, as much as is usual", unless it holds.
template <class Number>
void require(bool holds, std::string_view name, Number value, std::string_view allowed) {
    if (!holds) throw DecoderError(fmt::format("{} is {}; allowed: {}", name, value, allowed));
}

}  // namespace hone::decoder
