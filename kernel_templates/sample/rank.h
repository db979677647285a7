// Preference of the variants: which accesses are worth a trial, and how long a call takes. No template's hash
// covers it.
#pragma once

#include "kernel_templates/kit/typed.h"
#include "kernel_templates/sample/sample.h"

namespace hone::sample {

/// Widest access in elements that fits 16 bytes and divides the vocabulary.
[[nodiscard]] std::int64_t widest_vector(const SampleProblem&);

/// For a config with a tunable `vector`.
template <class C>
inline constexpr Constraint vector_is_widest =
    rule("accesses are the widest that divide the vocabulary and fit 16 bytes, or half of that",
         [](const SampleProblem& p, const C& c) {
             const std::int64_t widest = widest_vector(p);
             return c.vector == widest || (c.vector * 2 == widest && c.vector * p.element_bytes() >= 4);
         });

/// What the cost model needs of a candidate.
struct Cost {
    double blocks = 1;   ///< that share a row
    double threads = 0;  ///< a block
    double tokens = 0;   ///< a block
    bool held = false;   ///< masses stay in registers
    bool programmatic = false;
};
/// Modelled microseconds: a launch, and for each wave of blocks the exchanges, which take longer the more
/// blocks meet, and the looks at the block's logits. Fitted to 20 configs on an H200 with 128,256 logits in
/// bf16, where it is off by 10 % at most for one row.
[[nodiscard]] double predict_us(const SampleProblem&, const Cost&, const DeviceTraits&);

}  // namespace hone::sample
