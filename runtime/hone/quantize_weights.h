// QuantizeWeights. Generated from kernel_templates/quantize_weights/operators.py by `./hone generate`.
#pragma once

#include <cstdint>

#include "kernel_templates/dtype.h"
#include "kernel_templates/enums.h"

namespace hone {

/// Codes and scales of weights of 16 or 32 bits, for QuantizedLinear: [max_out, in] or fewer rows.
struct QuantizeWeights {
    std::int64_t in = 0;           ///< columns, 1 to 262144
    std::int64_t max_out = 32768;  ///< most rows of one call; `in` x max_out is at most 2^36, 1 to 1048576
    Dtype dtype = Dtype::bf16;     ///< element type of the weight: fp32, fp16 or bf16
    QuantFormat format = QuantFormat::w4a16;
    std::int64_t group = 0;  ///< as in QuantizedLinear
    bool zeros = false;      ///< w4a16: codes have zero points, one a group
    bool one_scale = false;  ///< w8a8, fp8 with group 0: one scale for the whole weight, not one a row
    /// element type of w4a16's scales: fp16 or bf16; the other formats' are fp32 always
    Dtype scale_dtype = Dtype::bf16;
    /// w4a16: takes the scale of each group that leaves the least squared error; else the one that clips
    /// nothing
    bool search = true;
};

/// codes, scales and zeros as QuantizedLinearArgs says, without gaps; no part may overlap another.
struct QuantizeWeightsArgs {
    const void* weight = nullptr;  ///< [out, in], dtype
    void* codes = nullptr;
    void* scales = nullptr;
    void* zeros = nullptr;           ///< needed when codes have zero points
    void* workspace = nullptr;       ///< workspace_bytes(), aligned to 256; nullptr when that is 0
    std::int64_t weight_stride = 0;  ///< between two rows of the weight, in elements; 0: `in`
};

}  // namespace hone
