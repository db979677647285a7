#include "checkpoints/read/grouped_weight.h"

#include <algorithm>

namespace hone::checkpoints {

bool GroupedWeight::is_symmetric() const {
    return std::ranges::all_of(zeros, [&](std::uint8_t zero) { return zero == 1 << (bits - 1); });
}

}  // namespace hone::checkpoints
