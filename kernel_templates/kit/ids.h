// Ids of a table's rows, as tuning makes them up.
#pragma once

#include <cstdint>

namespace hone {

/// The distance between one id and the next so that `count` ids, 0 first, reach over all `rows` of a table and
/// stay within it.
[[nodiscard]] constexpr double id_step(std::int64_t rows, std::int64_t count) {
    return static_cast<double>(rows - 1) / static_cast<double>(count);
}

}  // namespace hone
