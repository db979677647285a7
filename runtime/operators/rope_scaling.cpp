#include "runtime/operators/rope_scaling.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <vector>

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

Wrong wrong_factors(std::string_view name, const std::vector<double>& factors, std::int64_t rotary_dim) {
    if (std::ssize(factors) != rotary_dim / 2)
        return WrongScaling{name, static_cast<double>(factors.size()),
                            fmt::format("{} of them, one a pair", rotary_dim / 2)};
    for (const double factor : factors) {
        if (!(factor > 0 && std::isfinite(factor))) return WrongScaling{name, factor, "above 0"};
    }
    return std::nullopt;
}

Wrong wrong_longrope(const RopeScaling& s, std::int64_t rotary_dim) {
    if (Wrong wrong = below("original_max_position", s.original_max_position, 2)) return wrong;
    if (Wrong wrong = below("attention_factor", s.attention_factor, 0)) return wrong;
    if (Wrong wrong = wrong_factors("short_factors", s.short_factors, rotary_dim)) return wrong;
    return wrong_factors("long_factors", s.long_factors, rotary_dim);
}

}  // namespace

std::optional<WrongScaling> wrong_scaling(const RopeScaling& scaling, std::int64_t rotary_dim) {
    using Kind = RopeScaling::Kind;
    if (scaling.kind == Kind::none) return std::nullopt;
    if (Wrong wrong = below("factor", scaling.factor, 1)) return wrong;
    if (scaling.kind == Kind::linear) return std::nullopt;
    if (Wrong wrong = below("original_max_position", scaling.original_max_position, 1)) return wrong;
    if (scaling.kind == Kind::llama3) return wrong_llama3(scaling);
    return scaling.kind == Kind::yarn ? wrong_yarn(scaling) : wrong_longrope(scaling, rotary_dim);
}

}  // namespace hone::runtime
