// The variants of linear, for its family and for rules that name another variant. Each is defined beside its
// space.
#pragma once

#include "kernel_templates/family.h"

namespace hone::linear {

extern const Variant wgmma;
extern const Variant copied;
extern const Variant wgmma_tf32;
extern const Variant ring;
extern const Variant mma;
extern const Variant strips;
extern const Variant mma_tiles;
extern const Variant gemv;
extern const Variant plain;

}  // namespace hone::linear
