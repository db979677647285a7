// The variants of quantized_expert_linear, for its family and for rules that name another variant. Each is
// defined beside its space.
#pragma once

#include "kernel_templates/family.h"

namespace hone::quantized_expert_linear {

extern const Variant wgmma_w16;
extern const Variant wgmma_w8;
extern const Variant mma;
extern const Variant plain;

}  // namespace hone::quantized_expert_linear
