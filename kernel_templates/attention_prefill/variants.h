// The variants of attention_prefill.
#pragma once

#include "kernel_templates/family.h"

namespace hone::attention_prefill {

extern const Variant wgmma;
extern const Variant wgmma_tf32;
extern const Variant mma;
extern const Variant plain;

}  // namespace hone::attention_prefill
