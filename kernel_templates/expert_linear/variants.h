// The variants of expert_linear, for its family and for rules that name another variant. Each is defined
// beside its space.
#pragma once

#include "kernel_templates/family.h"

namespace hone::expert_linear {

extern const Variant wgmma;
extern const Variant drawn_tiles;
extern const Variant mma_tiles;
extern const Variant gemv;
extern const Variant strips;
extern const Variant plain;

}  // namespace hone::expert_linear
