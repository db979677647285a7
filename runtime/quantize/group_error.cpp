#include "runtime/quantize/group_error.h"

namespace hone::runtime {

float squared_error(const float* values, std::int64_t count, const Codes& codes) {
    const float inverse = 1 / codes.scale;
    float sums[error_lanes] = {};
    for (std::int64_t i = 0; i < count; i += error_lanes) {
        for (int lane = 0; lane < error_lanes; ++lane) {
            const float value = values[i + lane];
            const float rest = value - nearest(value * inverse, codes.low, codes.high) * codes.scale;
            sums[lane] += rest * rest;
        }
    }
    for (int half = error_lanes / 2; half > 0; half /= 2) {
        for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    }
    return sums[0];
}

double best_scale_for(const float* values, std::int64_t count, const Codes& codes) {
    double products = 0;
    double squares = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const double code = nearest(values[i] / codes.scale, codes.low, codes.high);
        products += values[i] * code;
        squares += code * code;
    }
    return squares > 0 ? products / squares : 0;
}

}  // namespace hone::runtime
