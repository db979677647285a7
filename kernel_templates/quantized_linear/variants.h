// The variants of quantized_linear, for its family and for rules that name another variant. Each is defined
// beside its space.
#pragma once

#include "kernel_templates/family.h"

namespace hone::quantized_linear {

extern const Variant wgmma_w16;
extern const Variant two_widths;
extern const Variant wgmma_w8;
extern const Variant walk;
extern const Variant stream;
extern const Variant ring;
extern const Variant ring_w8;
extern const Variant dequantize;
extern const Variant mma;
extern const Variant plain;

}  // namespace hone::quantized_linear
