// The numbers that the angles of rotary embeddings are made of: what a model file says of them. Who runs a
// model needs them; kernels take the finished table.
#pragma once

#include "hone/rope_table.h"
#include "models/model_document.h"

namespace hone::models {

struct RotationNumbers {
    double base = 10'000;  ///< frequencies are base^(-2 i / rotary_dim)
    RopeScaling scaling;
};

/// From `rope_parameters`, else from `rope_theta` and `rope_scaling`. Throws ModelError naming file, line and
/// key for a kind of scaling that Hone does not compute, and for numbers that are missing or out of range.
[[nodiscard]] RotationNumbers rotation_numbers(const ModelDocument& document);

}  // namespace hone::models
