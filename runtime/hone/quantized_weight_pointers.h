// A stored weight of 4 or 8 bits in device memory, as quantized linear layers take it.
#pragma once

#include "hone/quant_format.h"  // IWYU pragma: export

namespace hone {

/// docs/formats.md says where each bit stands; QuantizedLinearArgs the shapes.
struct QuantizedWeightPointers {
    const void* codes = nullptr;
    const void* scales = nullptr;
    const void* zeros = nullptr;  ///< one byte each, at the places of scales; needed when codes have them
};

}  // namespace hone
