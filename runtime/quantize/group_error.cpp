#include "runtime/quantize/group_error.h"

#include <algorithm>

namespace hone::runtime {
namespace {

namespace rule = quantize_weights;

/// 32 lanes of sums; as many as GCC makes a loop of vector code of, not single steps.
struct Lanes {
    float of[rule::lanes] = {};

    [[nodiscard]] float sum() {
        for (int half = rule::lanes / 2; half > 0; half /= 2) {
            for (int lane = 0; lane < half; ++lane) of[lane] += of[lane + half];
        }
        return of[0];
    }
};

float piece_error(const float* values, std::int64_t count, const rule::Codes& codes) {
    const float inverse = 1 / codes.scale;
    Lanes errors;
    for (std::int64_t i = 0; i < count; i += rule::lanes) {
        for (int lane = 0; lane < rule::lanes; ++lane)
            errors.of[lane] += rule::square_of_rest(values[i + lane], inverse, codes);
    }
    return errors.sum();
}

void add_fit(const float* values, std::int64_t count, const rule::Codes& codes, float& products,
             float& squares) {
    const float inverse = 1 / codes.scale;
    Lanes product_lanes;
    Lanes square_lanes;
    for (std::int64_t i = 0; i < count; i += rule::lanes) {
        for (int lane = 0; lane < rule::lanes; ++lane) {
            const float value = values[i + lane];
            const float code = rule::nearest(rule::product(value, inverse), codes.low, codes.high);
            product_lanes.of[lane] += rule::product(value, code);
            square_lanes.of[lane] += rule::product(code, code);
        }
    }
    products += product_lanes.sum();
    squares += square_lanes.sum();
}

}  // namespace

float squared_error(const float* values, std::int64_t count, const rule::Codes& codes) {
    float sum = 0;
    for (std::int64_t begin = 0; begin < count; begin += rule::piece)
        sum += piece_error(values + begin, std::min<std::int64_t>(rule::piece, count - begin), codes);
    return sum;
}

float best_scale_for(const float* values, std::int64_t count, const rule::Codes& codes) {
    float products = 0;
    float squares = 0;
    for (std::int64_t begin = 0; begin < count; begin += rule::piece)
        add_fit(values + begin, std::min<std::int64_t>(rule::piece, count - begin), codes, products, squares);
    return squares > 0 ? products / squares : 0;
}

}  // namespace hone::runtime
