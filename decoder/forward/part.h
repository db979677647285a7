// What a step is made of: the words in which its kernels and its time are spoken of.
#pragma once

#include <cstdint>
#include <string_view>

namespace hone::decoder {

/// What a step is made of, in its order; norms of all heads or behind, and routing to experts, are
/// those of some models.
enum class Part : std::uint8_t {
    embedding,
    attention_norm,
    qkv,
    head_norms,
    append,
    attention,
    output,
    behind_attention,
    network_norm,
    routing,
    network,
    behind_network,
    last_norm,
    head,
    sampling
};
/// "norm of attention", say.
[[nodiscard]] std::string_view name(Part part);

}  // namespace hone::decoder
