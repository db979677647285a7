#include "tuner/checkpoint/grouped_weight.h"

#include <fmt/format.h>

#include <algorithm>

#include "tuner/errors.h"

namespace hone::tuner {

bool GroupedWeight::is_symmetric() const {
    return std::ranges::all_of(zeros, [&](std::uint8_t zero) { return zero == 1 << (bits - 1); });
}

void require_natural_order(const GroupedWeight& weight, const std::string& layer) {
    if (weight.column_order.empty()) return;
    throw ConfigError(fmt::format(
        "layer '{}': its columns were quantised by activation order (desc_act), so that x must be "
        "reordered before it is multiplied; this operator takes x as it is. Allowed: desc_act false, "
        "or static groups",
        layer));
}

}  // namespace hone::tuner
