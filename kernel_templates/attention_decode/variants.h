// The variants of attention_decode.
#pragma once

#include "kernel_templates/family.h"

namespace hone::attention_decode {

extern const Variant ring;
extern const Variant registers;
extern const Variant plain;

}  // namespace hone::attention_decode
