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
    double blocks_that_fit = 1;  ///< a multiprocessor, whatever the config asks for
    double producer_cycles = 0;  ///< of a block's only producer, for 16 tokens of a list
};
/// Modelled microseconds: rounds of resident blocks, each the soft maximum of the cache over the memory's
/// bandwidth, over what the copies in flight can draw, over what the fullest multiprocessor takes in, of its
/// issue slots, and of a lone producer; plus the rest. Fitted to 16,000 candidates in 182 problems measured
/// on an H100 and an H200: near candidates of a problem stray from it by 5 %.
[[nodiscard]] double predict_us(const DecodeProblem&, const Cut&, const Stream&, const DeviceTraits&);

}  // namespace hone::attention_decode
