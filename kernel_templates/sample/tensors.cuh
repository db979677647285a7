// What the kernels of this family share: the call's tensors, and what a row asks for.
#pragma once

#include "device/packet.cuh"
#include "device/random.cuh"
#include "device/sync.cuh"
#include "hone_constants.h"
#include "sample/numbers.cuh"

namespace hone::sample {

using Element = DtypeOf<Shape::dtype>::type;
inline constexpr bool has_filters = Shape::filters != 0;
inline constexpr bool has_log_probability = Shape::log_probability != 0;
/// Logits with their cap.
using Capped = Seen<static_cast<int>(Shape::softcap)>;
inline constexpr int vocabulary = static_cast<int>(Shape::vocabulary);
inline constexpr float infinity = __builtin_bit_cast(float, 0x7f800000u);

/// What a row asks for.
struct Request {
    float temperature;
    bool is_greedy;
    uint32 top_k;  ///< 0: all
    float top_p;
    float min_p;  ///< 0 to 1
    uint64 random;
};

struct Tensors : Arguments {
    __device__ Request request(int64 row) const {
        Request request{.temperature = temperature[row], .top_k = 0, .top_p = 1.0f, .min_p = 0.0f};
        request.is_greedy = !(request.temperature >= least_temperature);
        if constexpr (has_filters) {
            request.top_k = top_k[row] < vocabulary ? max(top_k[row], 0) : 0;
            request.top_p = top_p[row];
            if (min_p[row] > 0.0f) request.min_p = fminf(min_p[row], 1.0f);
        }
        request.random = random_bits(seed[row], counter[row]);
        return request;
    }

    __device__ void write(int64 row, int token, float largest, uint64 raw_mass) const {
        out[row] = token;
        if constexpr (has_log_probability) {
            const float logit = to_float(logits[row * logits_stride + token]);
            log_probability[row] =
                (Capped::logit(logit) - Capped::logit(largest)) - logf(__ull2float_rn(raw_mass) * 0x1p-31f);
        }
    }
    /// Rows whose largest logit is infinite, or that have no number at all.
    __device__ void write_infinite(int64 row, int token, float largest) const {
        out[row] = largest > 0.0f ? token : 0;
        if constexpr (has_log_probability) log_probability[row] = largest > 0.0f ? 0.0f : -infinity;
    }
};

}  // namespace hone::sample
