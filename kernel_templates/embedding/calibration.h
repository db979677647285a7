// What measurements add to the cost models (kernel_templates/calibration.h): thousandths of the
// logarithm of a factor, at floors of 1/16, 1/4, 1, 4, 16, 64, 256 and 1024 us. Written by
// bench/cost_fit; fitted anew rather than edited.
#pragma once

#include "kernel_templates/calibration.h"

namespace hone::embedding {

// clang-format off
inline constexpr Coefficient calibration[] = {
    {"", "", 0, {{458, 501, 254, 42, 59, 159, 210, 210}}},
    {"rows", "", 0, {{-12, -7, -6, -3, -15, -13, -8, -8}}},
    {"rows", "threads", 64, {{-7, -9, -6, -13, -8, -8, -7, -7}}},
    {"rows", "threads", 128, {{-12, -18, -10, -9, -8, -9, -9, -9}}},
    {"rows", "threads", 256, {{-8, -12, -8, -5, -7, -7, -7, -7}}},
    {"rows", "threads", 512, {{1, 8, 1, 5, -2, -1, 2, 2}}},
    {"rows", "threads", 1024, {{15, 23, 18, 20, 9, 12, 14, 14}}},
    {"rows", "lanes", 8, {{-3, -3, -3, -3, -5, -5, -3, -3}}},
    {"rows", "lanes", 16, {{-17, -17, -18, -26, -21, -19, -17, -17}}},
    {"rows", "lanes", 32, {{-5, -6, -5, -23, -16, -15, -10, -10}}},
    {"rows", "lanes", 64, {{10, 7, 5, 2, -6, -1, 2, 2}}},
    {"rows", "lanes", 128, {{5, 5, 9, 14, 6, 6, 6, 6}}},
    {"rows", "lanes", 256, {{-1, 5, 6, 11, 6, 5, 4, 4}}},
    {"rows", "lanes", 512, {{-6, -4, -5, 14, 14, 9, 3, 3}}},
    {"rows", "lanes", 1024, {{6, 5, 5, 10, 7, 7, 6, 6}}},
    {"rows", "vector", 4, {{-8, -6, -6, -8, -13, -11, -7, -7}}},
    {"rows", "vector", 8, {{-3, -1, 0, 6, -3, -2, -1, -1}}},
    {"rows", "programmatic", 0, {{-76, -48, -41, -19, -18, -24, -32, -32}}},
    {"rows", "programmatic", 1, {{64, 41, 35, 16, 3, 11, 24, 24}}},
    {"plain", "", 0, {{12, 7, 6, 3, 15, 13, 8, 8}}},
    {"plain", "threads", 64, {{-3, -3, -3, -5, -4, -4, -3, -3}}},
    {"plain", "threads", 128, {{-1, -1, -1, -6, -1, -1, -2, -2}}},
    {"plain", "threads", 256, {{-3, -3, -3, -5, -1, -2, -2, -2}}},
    {"plain", "threads", 512, {{0, 0, 0, 2, 4, 3, 1, 1}}},
    {"plain", "threads", 1024, {{18, 15, 15, 17, 18, 17, 14, 14}}},
    {"plain", "lanes", 64, {{-4, -4, -5, -9, -4, -4, -4, -4}}},
    {"plain", "lanes", 128, {{-7, -7, -9, -20, -7, -7, -8, -8}}},
    {"plain", "lanes", 256, {{1, 1, 1, 2, 3, 3, 2, 2}}},
    {"plain", "lanes", 512, {{17, 14, 14, 21, 16, 16, 14, 14}}},
    {"plain", "lanes", 1024, {{6, 4, 5, 8, 6, 6, 5, 5}}},
    {"plain", "vector", 1, {{12, 7, 6, 3, 15, 13, 8, 8}}},
    {"plain", "programmatic", 0, {{-23, -18, -16, -15, -8, -10, -13, -13}}},
    {"plain", "programmatic", 1, {{34, 25, 23, 17, 23, 23, 21, 21}}},
};
// clang-format on

}  // namespace hone::embedding
