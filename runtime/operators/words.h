// Words of choices, as problems spell them. Generated from generate/enums.py by `./hone generate`.
#pragma once

#include <string_view>

#include "kernel_templates/enums.h"

namespace hone::runtime {

/// Each throws std::invalid_argument for a number that is none, naming the field and what is allowed.
[[nodiscard]] std::string_view word(NormOutput output);
[[nodiscard]] std::string_view word(Activation activation);
[[nodiscard]] std::string_view word(QuantFormat format);
[[nodiscard]] std::string_view word(KvDtype kv_dtype);
[[nodiscard]] std::string_view word(RopeStyle style);
[[nodiscard]] std::string_view word(IndexType index);

}  // namespace hone::runtime
