// The table of angles that the rotary embedding takes (kernel family rope_kv_append): computed on the host,
// once a model, copied to the device by the caller. Needs no GPU; safe from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "hone/error.h"

namespace hone {

/// How a model stretches its frequencies to positions beyond those that it was trained on. With f the
/// frequency base^(-2i / rotary_dim) of pair i:
///   none    f
///   linear  f / factor (position interpolation: Chen et al., arXiv:2306.15595)
///   llama3  by wavelength w = 2 pi / f: f where w < original_max_position / high_freq_factor, f / factor
///   where
///           w > original_max_position / low_freq_factor, and in between both, weighed by
///           (original_max_position / w - low_freq_factor) / (high_freq_factor - low_freq_factor)
///           (Llama 3.1's reference code, apply_scaling)
///   yarn    f for pairs that turn more than beta_fast times within original_max_position, f / factor for
///   those that
///           turn less than beta_slow times, a linear ramp over the pairs' numbers in between, whose ends are
///           rounded outwards unless whole_ends is false; cos and sin times attention_factor (Peng et al.,
///           arXiv:2309.00071, and their code)
///   longrope  f / short_factors[i] in tables of up to original_max_position positions, f / long_factors[i]
///           in longer ones; cos and sin times attention_factor (Ding et al., arXiv:2402.13753)
struct RopeScaling {
    enum class Kind : std::uint8_t { none, linear, llama3, yarn, longrope };

    Kind kind = Kind::none;
    double factor = 1;                 ///< at least 1; new length over original length
    double original_max_position = 0;  ///< of all but linear: positions that the model was first trained on
    double low_freq_factor = 1;        ///< llama3: less than high_freq_factor
    double high_freq_factor = 4;       ///< llama3
    double beta_fast = 32;             ///< yarn: more than beta_slow
    double beta_slow = 1;              ///< yarn
    bool whole_ends = true;            ///< yarn
    /// yarn: 0 means 0.1 ln(factor) + 1, as the paper recommends; longrope: 0 means
    /// sqrt(1 + ln(factor) / ln(original_max_position)).
    double attention_factor = 0;
    std::vector<double> short_factors;  ///< longrope: one a pair, above 0
    std::vector<double> long_factors;   ///< the same

    friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

/// Radians a position of each pair, [rotary_dim / 2], in a table of so many positions, which longrope alone
/// asks. Throws Error (bad_argument) for an odd or negative rotary_dim, a base of 1 or less, or a scaling as
/// above forbids.
[[nodiscard]] std::vector<double> rope_frequencies(std::int64_t rotary_dim, double base,
                                                   const RopeScaling& scaling = {},
                                                   std::int64_t positions = 0);

/// cos [positions, rotary_dim / 2], then sin, the same: `positions * rotary_dim` floats. Angles and their
/// functions are computed in double and rounded once, at any position. Throws as rope_frequencies, and where
/// positions is less than 1 or the table has more than 2^32 elements.
[[nodiscard]] std::vector<float> rope_table(std::int64_t rotary_dim, double base, std::int64_t positions,
                                            const RopeScaling& scaling = {});

}  // namespace hone
