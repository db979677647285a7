// Variant dequantise, for the family's list.
#pragma once

#include "kernel_templates/family.h"

namespace hone::quantized_linear {

extern const Variant dequantise;

}  // namespace hone::quantized_linear
