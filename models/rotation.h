// The numbers that the angles of rotary embeddings are made of: what a model file says of them. Who runs a
// model needs them; kernels take the finished table.
#pragma once

#include "hone/rope_table.h"
#include "models/model.h"
#include "models/model_document.h"

namespace hone::models {

struct RotationNumbers {
    double base = 10'000;  ///< frequencies are base^(-2 i / rotary_dim)
    RopeScaling scaling;

    friend bool operator==(const RotationNumbers&, const RotationNumbers&) = default;
};

struct Rotations {
    RotationNumbers full;      ///< of layers that see all keys
    RotationNumbers windowed;  ///< of layers with a window; of most models the same
};

/// From `rope_parameters`, which may have members `full_attention` and `sliding_attention`, else from
/// `rope_theta`, `rope_scaling` and, of models whose windows turn otherwise, what their architecture says.
/// `model` is what was read of the same file. Throws ModelError naming file, line and key for a kind of
/// scaling that Hone does not compute, and for numbers that are missing or out of range.
[[nodiscard]] Rotations read_rotations(const ModelDocument& document, const Model& model);

}  // namespace hone::models
