#include "kernel_templates/quantized_linear/mma/rank.h"

#include <algorithm>
#include <cmath>

namespace hone::quantized_linear {

std::int64_t loads(const QuantizedProblem& p, const MmaConfig& c) {
    return c.unroll * p.products() * c.rows / 16 * (p.bits() == 4 ? 1 : 2);
}

std::int64_t registers(const QuantizedProblem& p, const MmaConfig& c) {
    const std::int64_t blocks = p.products() * c.rows / 16;
    const std::int64_t scales = p.has_groups() ? (p.group == 32 ? 2 : 1) : 0;
    const std::int64_t batch = 4 * loads(p, c) + c.unroll * blocks * scales * (p.zeros ? 2 : 1);
    const std::int64_t sums = blocks * c.tokens / 8 * 4;
    const std::int64_t rest = p.format != QuantFormat::fp8 ? 40 : p.group == 0 ? 72 : 104;
    return 2 * batch + sums + blocks * (p.is_packed() ? 8 : 4) + rest;
}

double slots(const QuantizedProblem& p, const MmaConfig& c) {
    const double token_blocks = static_cast<double>(c.tokens) / 8;
    const double sharers = static_cast<double>(p.products() * c.rows) / 16;
    switch (p.format) {
        case QuantFormat::w4a16: return 10 + (p.group == 0 ? 44.0 : 60.0) + token_blocks * (20 + 8 / sharers);
        case QuantFormat::w8a16: return 10 + 24 + token_blocks * (10 + 4 / sharers);
        case QuantFormat::w8a8: return 10 + token_blocks * (5 + 2 / sharers);
        default: return 10 + token_blocks * ((p.group == 0 ? 6.0 : 12.0) + 4 / sharers);
    }
}

double fitting(const mma_blocks::Geometry& g, std::int64_t registers, const DeviceTraits& traits) {
    const auto used = static_cast<double>(registers);
    return std::max(
        1.0,
        std::floor(std::min({65536 / (used * g.threads()),
                             static_cast<double>(traits.shared_bytes_per_sm) / (g.shared_bytes() + 1024.0),
                             static_cast<double>(traits.max_threads_per_sm) / g.threads()})));
}

}  // namespace hone::quantized_linear
