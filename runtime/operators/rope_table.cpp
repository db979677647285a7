#include "hone/rope_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/operators/rope_scaling.h"

namespace hone {
namespace {

constexpr std::int64_t max_elements = std::int64_t{1} << 32;

void require(bool condition, std::string_view name, double value, std::string_view allowed) {
    if (condition) return;
    throw Error(fmt::format("{} is {}; allowed: {}", name, value, allowed), "rope_table",
                "check the model's rotary settings", ErrorKind::bad_argument);
}

void check(std::int64_t rotary_dim, double base, const RopeScaling& scaling) {
    require(rotary_dim >= 0 && rotary_dim % 2 == 0, "rotary_dim", static_cast<double>(rotary_dim),
            "even numbers from 0 on");
    require(base > 1 && std::isfinite(base), "base", base, "finite numbers above 1");
    if (const std::optional<runtime::WrongScaling> wrong = runtime::wrong_scaling(scaling, rotary_dim))
        require(false, wrong->name, wrong->value, fmt::format("finite numbers {}", wrong->allowed));
}

/// The part of the frequency that is kept, 0 to 1; the rest is divided by the factor.
double llama3_share(double frequency, const RopeScaling& scaling) {
    const double turns = scaling.original_max_position * frequency / (2 * std::numbers::pi);
    return std::clamp(
        (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor), 0.0, 1.0);
}

/// The pair, as a real number, that turns so often within the original positions.
double yarn_pair(double turns, std::int64_t rotary_dim, double base, const RopeScaling& scaling) {
    return static_cast<double>(rotary_dim) *
           std::log(scaling.original_max_position / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
}

double yarn_share(std::int64_t pair, std::int64_t rotary_dim, double base, const RopeScaling& scaling) {
    const double begin = yarn_pair(scaling.beta_fast, rotary_dim, base, scaling);
    const double end = yarn_pair(scaling.beta_slow, rotary_dim, base, scaling);
    const double first = std::max(scaling.whole_ends ? std::floor(begin) : begin, 0.0);
    const double last =
        std::min(scaling.whole_ends ? std::ceil(end) : end, static_cast<double>(rotary_dim - 1));
    const double width = std::max(last - first, 0.001);  // a step where the ends meet
    return 1 - std::clamp((static_cast<double>(pair) - first) / width, 0.0, 1.0);
}

/// The frequency of each pair of a table of so many positions.
double longrope(std::int64_t pair, double frequency, std::int64_t positions, const RopeScaling& scaling) {
    const bool is_long = static_cast<double>(positions) > scaling.original_max_position;
    const std::vector<double>& factors = is_long ? scaling.long_factors : scaling.short_factors;
    return frequency / factors[static_cast<std::size_t>(pair)];
}

/// Of the other kinds.
double kept_share(std::int64_t pair, std::int64_t rotary_dim, double base, double frequency,
                  const RopeScaling& scaling) {
    switch (scaling.kind) {
        case RopeScaling::Kind::none: return 1;
        case RopeScaling::Kind::linear: return 0;
        case RopeScaling::Kind::llama3: return llama3_share(frequency, scaling);
        case RopeScaling::Kind::yarn: return yarn_share(pair, rotary_dim, base, scaling);
        case RopeScaling::Kind::longrope: break;
    }
    throw Error("kind is no kind of scaling", "rope_table", "use an enumerator of RopeScaling::Kind",
                ErrorKind::bad_argument);
}

double amplitude(const RopeScaling& scaling) {
    const bool is_yarn = scaling.kind == RopeScaling::Kind::yarn;
    if (!is_yarn && scaling.kind != RopeScaling::Kind::longrope) return 1;
    if (scaling.attention_factor != 0) return scaling.attention_factor;
    const double stretch = std::log(scaling.factor);
    return is_yarn ? 0.1 * stretch + 1 : std::sqrt(1 + stretch / std::log(scaling.original_max_position));
}

}  // namespace

std::vector<double> rope_frequencies(std::int64_t rotary_dim, double base, const RopeScaling& scaling,
                                     std::int64_t positions) {
    check(rotary_dim, base, scaling);
    std::vector<double> frequencies(static_cast<std::size_t>(rotary_dim / 2));
    for (std::int64_t pair = 0; pair < rotary_dim / 2; ++pair) {
        const double plain = std::pow(base, -2 * static_cast<double>(pair) / static_cast<double>(rotary_dim));
        if (scaling.kind == RopeScaling::Kind::longrope) {
            frequencies[static_cast<std::size_t>(pair)] = longrope(pair, plain, positions, scaling);
            continue;
        }
        const double kept = kept_share(pair, rotary_dim, base, plain, scaling);
        frequencies[static_cast<std::size_t>(pair)] = plain * (kept + (1 - kept) / scaling.factor);
    }
    return frequencies;
}

std::vector<float> rope_table(std::int64_t rotary_dim, double base, std::int64_t positions,
                              const RopeScaling& scaling) {
    const std::vector<double> frequencies = rope_frequencies(rotary_dim, base, scaling, positions);
    require(positions >= 1 && positions <= max_elements / std::max<std::int64_t>(rotary_dim, 1), "positions",
            static_cast<double>(positions), "1 to 2^32 / rotary_dim");
    const double scale = amplitude(scaling);
    const std::size_t half = frequencies.size();
    const std::size_t sines = static_cast<std::size_t>(positions) * half;
    std::vector<float> table(2 * sines);
    for (std::size_t i = 0; i < sines; ++i) {
        const double angle = static_cast<double>(i / half) * frequencies[i % half];
        table[i] = static_cast<float>(scale * std::cos(angle));
        table[sines + i] = static_cast<float>(scale * std::sin(angle));
    }
    return table;
}

}  // namespace hone
