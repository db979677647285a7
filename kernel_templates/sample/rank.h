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

/// What is computed anew at each look at a token.
enum class Look {
    held,    ///< nothing: masses stay in registers
    masses,  ///< its mass
    values,  ///< its mass, but for the histogram that of each value
};
/// What the cost model needs of a candidate.
struct Cost {
    double blocks = 1;    ///< that share a row
    double resident = 1;  ///< blocks that share a multiprocessor
    double threads = 0;   ///< a block
    double tokens = 0;    ///< a block
    Look look = Look::masses;
    bool programmatic = false;
};
/// Modelled microseconds: a launch, and for each wave of clusters the exchanges, which take longer the more
/// blocks meet, and the looks at a block's logits. Fitted to 25 configs on an H200 with 128,256 and 32,000
/// logits in bf16 and 1, 8, 64 and 256 rows; `values` is reckoned from that and from instructions.
[[nodiscard]] double predict_us(const SampleProblem&, const Cost&, const DeviceTraits&);

}  // namespace hone::sample
