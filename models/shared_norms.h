// The products of steps of one token a sequence that share norms, so that these need no launch
// (kernel_templates/shared_norm_linear), described as the runtime takes them: for the decoder, which runs
// them, and for the tuner, which lists what steps ask for. Pure functions of a model that lacks nothing
// (step_operators.h).
#pragma once

#include <cstdint>

#include "checkpoints/pack/weight_format.h"
#include "kernel_templates/problem.h"
#include "models/model.h"

namespace hone::models {

/// Sequences, at most, whose steps may have such products of weights of this format, or of numbers; 0: none.
[[nodiscard]] std::int64_t most_sharing_sequences(const Model& model,
                                                  const checkpoints::WeightFormat& format);

/// A layer's products, of up to so many tokens; without a format their weights are numbers. Of models that
/// have some.
struct SharedNormProblems {
    SharedNormProblems(const Model& model, const checkpoints::WeightFormat& format, std::int64_t tokens);

    Problem qkv;
    Problem output;
    Problem up;  ///< the network's first half, gated or not
    Problem down;
};

}  // namespace hone::models
