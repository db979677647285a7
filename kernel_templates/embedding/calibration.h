// What measurements add to the cost models (kernel_templates/calibration.h): thousandths of the
// logarithm of a factor, at floors of 1/16, 1/4, 1, 4, 16, 64, 256 and 1024 us. Written by
// bench/cost_fit; fitted anew rather than edited.
#pragma once

#include "kernel_templates/calibration.h"

namespace hone::embedding {

// clang-format off
inline constexpr Coefficient calibration[] = {
    {"", "", 0, {{454, 465, 252, 56, 75, 151, 208, 208}}},
    {"rows", "", 0, {{-11, -6, -6, -3, -15, -13, -8, -8}}},
    {"rows", "threads", 64, {{-9, -11, -10, -15, -9, -9, -9, -9}}},
    {"rows", "threads", 128, {{-15, -16, -14, -13, -8, -11, -11, -11}}},
    {"rows", "threads", 256, {{-8, -9, -7, -6, -7, -7, -6, -6}}},
    {"rows", "threads", 512, {{1, 4, 1, 4, -3, -1, 1, 1}}},
    {"rows", "threads", 1024, {{21, 26, 24, 26, 13, 15, 18, 18}}},
    {"rows", "lanes", 8, {{-3, -3, -3, -3, -5, -4, -3, -3}}},
    {"rows", "lanes", 16, {{-17, -17, -18, -26, -21, -19, -17, -17}}},
    {"rows", "lanes", 32, {{-8, -9, -11, -25, -17, -16, -12, -12}}},
    {"rows", "lanes", 64, {{12, 9, 7, 3, -3, -1, 4, 4}}},
    {"rows", "lanes", 128, {{6, 7, 10, 18, 7, 7, 8, 8}}},
    {"rows", "lanes", 256, {{-4, 2, 4, 6, 3, 4, 2, 2}}},
    {"rows", "lanes", 512, {{-5, -1, -2, 15, 14, 10, 4, 4}}},
    {"rows", "lanes", 1024, {{7, 5, 5, 10, 7, 7, 6, 6}}},
    {"rows", "vector", 4, {{-8, -6, -7, -10, -12, -12, -8, -8}}},
    {"rows", "vector", 8, {{-3, 0, 1, 7, -3, -1, 0, 0}}},
    {"rows", "programmatic", 0, {{-76, -48, -41, -19, -19, -24, -32, -32}}},
    {"rows", "programmatic", 1, {{64, 41, 35, 17, 4, 11, 25, 25}}},
    {"plain", "", 0, {{11, 6, 6, 3, 15, 13, 8, 8}}},
    {"plain", "threads", 64, {{-3, -3, -3, -5, -4, -4, -3, -3}}},
    {"plain", "threads", 128, {{-4, -4, -4, -8, -3, -3, -4, -4}}},
    {"plain", "threads", 256, {{-3, -3, -3, -5, -1, -2, -2, -2}}},
    {"plain", "threads", 512, {{2, 1, 1, 2, 4, 4, 2, 2}}},
    {"plain", "threads", 1024, {{19, 16, 16, 18, 19, 17, 15, 15}}},
    {"plain", "lanes", 64, {{-4, -4, -5, -9, -4, -4, -4, -4}}},
    {"plain", "lanes", 128, {{-10, -10, -11, -22, -8, -9, -10, -10}}},
    {"plain", "lanes", 256, {{1, 1, 1, 2, 3, 3, 2, 2}}},
    {"plain", "lanes", 512, {{18, 15, 15, 22, 17, 16, 15, 15}}},
    {"plain", "lanes", 1024, {{7, 5, 5, 9, 6, 6, 5, 5}}},
    {"plain", "vector", 1, {{11, 6, 6, 3, 15, 13, 8, 8}}},
    {"plain", "programmatic", 0, {{-23, -17, -16, -15, -8, -10, -13, -13}}},
    {"plain", "programmatic", 1, {{34, 24, 22, 17, 23, 22, 20, 20}}},
};
// clang-format on

}  // namespace hone::embedding
