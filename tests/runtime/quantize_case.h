// Weights to quantize, drawn.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "hone/quantize.h"
#include "tests/support/minifloat.h"

namespace hone::test {

enum class WeightSpread { normal, uniform, outliers, positive, tiny };

inline std::vector<float> drawn_weights(std::int64_t count, WeightSpread spread, unsigned seed) {
    std::mt19937 bits(seed);
    std::normal_distribution<float> normal(0, 0.02F);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> weights(static_cast<std::size_t>(count));
    for (float& weight : weights) {
        switch (spread) {
            case WeightSpread::normal: weight = normal(bits); break;
            case WeightSpread::uniform: weight = uniform(bits); break;
            case WeightSpread::outliers: weight = normal(bits) * (bits() % 64 == 0 ? 20.0F : 1.0F); break;
            case WeightSpread::positive: weight = 0.5F + std::fabs(normal(bits)); break;
            case WeightSpread::tiny: weight = normal(bits) * 1e-5F; break;
        }
    }
    return weights;
}

/// Weights of a dtype, and the numbers that they are.
struct Weights {
    std::vector<std::byte> bytes;
    std::vector<float> values;
};

inline Weights weights_of(const std::vector<float>& wanted, Dtype dtype) {
    if (dtype == Dtype::fp32) {
        const auto bytes = std::as_bytes(std::span(wanted));
        return {{bytes.begin(), bytes.end()}, wanted};
    }
    const MinifloatFormat& format = dtype == Dtype::fp16 ? fp16_format : bf16_format;
    Weights result;
    for (const float weight : wanted) {
        const double value = rounded(static_cast<double>(weight), format);
        const std::uint32_t bits = encoded(value, format);
        result.values.push_back(static_cast<float>(value));
        result.bytes.push_back(static_cast<std::byte>(bits & 255U));
        result.bytes.push_back(static_cast<std::byte>(bits >> 8));
    }
    return result;
}

/// Squared error of values as the nearest of scale * (low to low + 15), in double.
inline double squared_error_of(std::span<const float> values, double scale, int low) {
    double sum = 0;
    for (const float value : values) {
        const double code = std::clamp(std::nearbyint(static_cast<double>(value) / scale),
                                       static_cast<double>(low), low + 15.0);
        sum += std::pow(static_cast<double>(value) - code * scale, 2);
    }
    return sum;
}

}  // namespace hone::test
