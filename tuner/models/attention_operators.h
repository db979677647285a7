// The attention of a model as operators: over a prompt, over one new token of each sequence, and the rotation
// of queries and keys with the append to the cache. The tables of sizes are at the top of the .cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "tuner/models/operators.h"

namespace hone::tuner {

/// What one of the tensor-parallel GPUs computes.
struct AttentionShape {
    Dtype dtype = Dtype::bf16;
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
};

/// `tokens` of a forward pass are those of one prompt, or one of each of as many sequences; empty: the usual
/// prompts and numbers of sequences.
[[nodiscard]] std::vector<ModelOperator> attention_operators(const Model& model, const AttentionShape& shape,
                                                             const std::vector<std::int64_t>& tokens);

/// Sequences that decode together, and keys of each.
struct CacheSize {
    std::int64_t batch = 0;
    std::int64_t kv_len = 0;
};
/// Those at which attention over one token is tuned; `tokens` as above.
[[nodiscard]] std::vector<CacheSize> cache_sizes(const Model& model, const AttentionShape& shape,
                                                 const std::vector<std::int64_t>& tokens);

}  // namespace hone::tuner
