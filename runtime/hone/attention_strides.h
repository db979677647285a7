// How tensors of heads lie in memory: what attention and its append have in common.
#pragma once

#include <cstdint>

namespace hone {

/// Elements between neighbours of a tensor [batch, tokens, heads, head_dim], whose last dimension is
/// contiguous; 0: `head` is head_dim, `token` all heads of a token, `batch` all tokens of a sequence, `token`
/// apart. [batch, heads, tokens, head_dim] is {heads * tokens * head_dim, head_dim, tokens * head_dim}.
struct AttentionStrides {
    std::int64_t batch = 0;
    std::int64_t token = 0;
    std::int64_t head = 0;
};

}  // namespace hone
