// Preference of the variants: what their cost models share. No template's hash covers it.
#pragma once

#include "kernel_templates/attention_decode/cut.h"

namespace hone::attention_decode {

/// Bytes of K and V that a call must read.
[[nodiscard]] inline double cache_bytes(const DecodeProblem& p) {
    return 2.0 * static_cast<double>(p.batch * p.tokens_seen()) *
           static_cast<double>(p.kv_heads * p.head_dim * p.cache_element_bytes());
}

/// What the cost model needs of a candidate.
struct Stream {
    double in_flight_bytes = 0;  ///< what a block has on its way from memory
    double instructions = 0;     ///< a warp's, for 16 tokens of a list
    double rest_us = 0;          ///< what a call takes besides, without the meeting of pieces
    double slowdown = 1;         ///< factor on the time of the memory's stream
    double producer_cycles = 0;  ///< of a block's only producer, for 16 tokens of a list
};
/// Modelled microseconds: rounds of resident blocks, each the soft maximum of the cache over the memory's
/// bandwidth, over what the copies in flight can draw, of issue slots, and of a lone producer; plus the rest.
/// Fitted to 81 candidates in 12 problems measured on an H100: four of five within 5 %.
[[nodiscard]] double predict_us(const DecodeProblem&, const Cut&, const Stream&, const DeviceTraits&);

}  // namespace hone::attention_decode
