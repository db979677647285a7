// One number of a softmax, as a logarithm.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace hone::decoder {

/// log(exp(x[place]) / sum of all exp(x)); NaN where one of them is NaN or infinite.
[[nodiscard]] inline double log_softmax(std::span<const double> x, std::size_t place) {
    double largest = x[place];
    for (const double one : x) {
        if (!std::isfinite(one)) return std::nan("");
        largest = std::max(largest, one);
    }
    double sum = 0;
    for (const double one : x) sum += std::exp(one - largest);
    return x[place] - largest - std::log(sum);
}

}  // namespace hone::decoder
