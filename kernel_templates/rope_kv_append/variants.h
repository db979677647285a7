// The variants of rope_kv_append.
#pragma once

#include "kernel_templates/family.h"

namespace hone::rope_kv_append {

extern const Variant packets;
extern const Variant plain;

}  // namespace hone::rope_kv_append
