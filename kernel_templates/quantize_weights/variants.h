// The variants of quantize_weights, for its family.
#pragma once

#include "kernel_templates/family.h"

namespace hone::quantize_weights {

extern const Variant warps;

}  // namespace hone::quantize_weights
