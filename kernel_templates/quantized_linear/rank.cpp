#include "kernel_templates/quantized_linear/rank.h"

#include "kernel_templates/quantized_linear/variants.h"

namespace hone::quantized_linear {

double quantize_us(const QuantizedProblem& p, const DeviceTraits& traits) {
    if (!p.quantizes_x()) return 0;
    // A launch that waits for the one before it, and a pass over x that leaves half as much.
    return 2.0 + 1.5 * p.x_bytes() / (0.85e-6 * traits.memory_bytes_per_s);
}

double prepare_us(const QuantizedProblem& p, const DeviceTraits& traits) {
    return p.is_packed() ? linear::normalize_us(p.dense(), traits) : quantize_us(p, traits);
}

bool is_for_walk(const QuantizedProblem& p, const DeviceTraits& traits) {
    constexpr double least_bytes = 14e6;
    return p.is_packed() && p.bits() == 4 && p.gated && !p.norm && p.tokens <= 2 && p.in % 16 == 0 &&
           p.weight_bytes() >= least_bytes && runs_on(walk, traits);
}

bool is_for_ring(const QuantizedProblem& p, const DeviceTraits& traits) {
    constexpr double least_bytes_of_two = 8e6;
    if (!p.is_packed() || p.norm || p.tokens < 2 || !runs_on(ring, traits) || is_for_walk(p, traits))
        return false;
    return p.tokens > 2 || p.weight_bytes() >= least_bytes_of_two;
}

}  // namespace hone::quantized_linear
