// How much of a long test is done.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace hone::test {

/// `count` times HONE_TEST_SCALE (default 1), at least 1.
[[nodiscard]] inline int scaled(int count) {
    const char* scale = std::getenv("HONE_TEST_SCALE");
    return std::max(1, static_cast<int>(count * (scale == nullptr ? 1.0 : std::atof(scale))));
}

}  // namespace hone::test
