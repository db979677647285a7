// Names of activations and dtypes in model files, and checks that all readers of models share.
#pragma once

#include <array>

#include "models/keys.h"
#include "models/model.h"

namespace hone::models {

inline constexpr std::array<NamedValue, 8> activations{{{"silu", "silu"},
                                                        {"swish", "silu"},
                                                        {"gelu", "gelu_erf"},
                                                        {"gelu_new", "gelu_tanh"},
                                                        {"gelu_fast", "gelu_tanh"},
                                                        {"gelu_tanh", "gelu_tanh"},
                                                        {"gelu_pytorch_tanh", "gelu_tanh"},
                                                        {"relu", "relu"}}};
inline constexpr std::array<NamedValue, 9> dtypes{{{"bfloat16", "bf16"},
                                                   {"bf16", "bf16"},
                                                   {"float16", "fp16"},
                                                   {"fp16", "fp16"},
                                                   {"half", "fp16"},
                                                   {"float32", "fp32"},
                                                   {"fp32", "fp32"},
                                                   {"float", "fp32"},
                                                   {"torch.bfloat16", "bf16"}}};

/// Throws ModelError where key and value heads do not divide the heads.
void check_kv_heads(const Keys& keys, const Model& model, const Spellings& spellings);
/// Throws ModelError where there are more layers than max_layers.
void check_layers(const Keys& keys, const Model& model, const Spellings& spellings);

}  // namespace hone::models
