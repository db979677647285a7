#include "kernel_templates/quantized_linear/rank.h"

namespace hone::quantized_linear {

double quantize_us(const QuantizedProblem& p, const DeviceTraits& traits) {
    if (!p.quantizes_x()) return 0;
    // A launch that waits for the one before it, and a pass over x that leaves half as much.
    return 2.0 + 1.5 * p.x_bytes() / (0.85e-6 * traits.memory_bytes_per_s);
}

double prepare_us(const QuantizedProblem& p, const DeviceTraits& traits) {
    return p.is_packed() ? linear::normalize_us(p.dense(), traits) : quantize_us(p, traits);
}

}  // namespace hone::quantized_linear
