// What quantizing loses, summed up.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "hone/quantize.h"

namespace hone::runtime {

/// Sums over a piece of a weight.
struct LossSums {
    double errors = 0;   ///< squared
    double weights = 0;  ///< squared
    double largest = 0;

    void add(const LossSums& other) {
        errors += other.errors;
        weights += other.weights;
        largest = std::fmax(largest, other.largest);
    }
    /// Adds `count` values; their codes stand for the numbers stored(i) * scale.
    template <class Stored>
    void add(const float* values, std::int64_t count, double scale, const Stored& stored) {
        for (std::int64_t i = 0; i < count; ++i) {
            const double value = values[i];
            const double error = std::fabs(value - stored(i) * scale);
            errors += error * error;
            weights += value * value;
            largest = error > largest ? error : largest;
        }
    }
};

/// The loss over all pieces, in order, so that it does not depend on threads.
inline QuantLoss loss_of(const std::vector<LossSums>& pieces) {
    LossSums all;
    for (const LossSums& piece : pieces) all.add(piece);
    return {all.weights > 0 ? std::sqrt(all.errors / all.weights) : 0, all.largest};
}

}  // namespace hone::runtime
