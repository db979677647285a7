#include "runtime/operators/rope_scaling.h"

#include <fmt/format.h>

#include <cmath>

namespace hone::runtime {
namespace {

using Wrong = std::optional<WrongScaling>;

// Conditions that NaN does not satisfy either.

Wrong below(std::string_view name, double value, double least) {
    if (value >= least && std::isfinite(value)) return std::nullopt;
    return WrongScaling{name, value, fmt::format("from {} on", least)};
}

Wrong not_positive(std::string_view name, double value) {
    if (value > 0) return std::nullopt;
    return WrongScaling{name, value, "above 0"};
}

Wrong not_above(std::string_view name, double value, std::string_view other, double limit) {
    if (value > limit) return std::nullopt;
    return WrongScaling{name, value, fmt::format("above {}, which is {}", other, limit)};
}

Wrong wrong_llama3(const RopeScaling& s) {
    if (Wrong wrong = not_positive("low_freq_factor", s.low_freq_factor)) return wrong;
    return not_above("high_freq_factor", s.high_freq_factor, "low_freq_factor", s.low_freq_factor);
}

Wrong wrong_yarn(const RopeScaling& s) {
    if (Wrong wrong = not_positive("beta_slow", s.beta_slow)) return wrong;
    if (Wrong wrong = not_above("beta_fast", s.beta_fast, "beta_slow", s.beta_slow)) return wrong;
    return below("attention_factor", s.attention_factor, 0);
}

}  // namespace

std::optional<WrongScaling> wrong_scaling(const RopeScaling& scaling) {
    using Kind = RopeScaling::Kind;
    if (scaling.kind == Kind::none) return std::nullopt;
    if (Wrong wrong = below("factor", scaling.factor, 1)) return wrong;
    if (scaling.kind == Kind::linear) return std::nullopt;
    if (Wrong wrong = below("original_max_position", scaling.original_max_position, 1)) return wrong;
    return scaling.kind == Kind::llama3 ? wrong_llama3(scaling) : wrong_yarn(scaling);
}

}  // namespace hone::runtime
