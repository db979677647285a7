#include "tuner/checkpoint/grouped_weight.h"

#include <algorithm>

namespace hone::tuner {

bool GroupedWeight::is_symmetric() const {
    return std::ranges::all_of(zeros, [&](std::uint8_t zero) { return zero == 1 << (bits - 1); });
}

}  // namespace hone::tuner
