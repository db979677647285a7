#include "kernel_templates/kit/fallbacks.h"

namespace hone {

std::optional<Config> best_of(const Problem& problem, const Variant& variant, std::span<const Config> configs,
                              const DeviceTraits& traits) {
    std::optional<Config> best;
    double best_us = 0;
    for (const Config& config : configs) {
        if (!allowed(problem, {&variant, config}, traits)) continue;
        const double us = variant.predict_us(problem, config, traits);
        if (best && us >= best_us) continue;
        best = config;
        best_us = us;
    }
    return best;
}

}  // namespace hone
