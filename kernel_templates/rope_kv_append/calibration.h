// What measurements add to the cost models (kernel_templates/calibration.h): thousandths of the
// logarithm of a factor, at floors of 1/16, 1/4, 1, 4, 16, 64, 256 and 1024 us. Written by
// bench/cost_fit; fitted anew rather than edited.
#pragma once

#include "kernel_templates/calibration.h"

namespace hone::rope_kv_append {

// clang-format off
inline constexpr Coefficient calibration[] = {
    {"", "", 0, {{-287, -167, -119, -249, -146, -98, -158, -153}}},
    {"packets", "", 0, {{43, 22, 22, 22, 22, 22, 22, 22}}},
    {"packets", "threads", 64, {{-12, -20, 15, 49, 27, 21, 12, 11}}},
    {"packets", "threads", 128, {{-13, -11, 7, 18, 13, 13, 4, 4}}},
    {"packets", "threads", 256, {{13, 6, -6, -28, -15, -15, -7, -7}}},
    {"packets", "threads", 384, {{56, 47, 6, -18, -3, 3, 13, 13}}},
    {"packets", "vector", 4, {{49, 37, 29, 28, 22, 19, 22, 26}}},
    {"packets", "vector", 8, {{-7, -15, -8, -6, -1, 3, 0, -4}}},
    {"packets", "heads_a_thread", 1, {{25, 12, 42, 55, 17, 18, 19, 24}}},
    {"packets", "heads_a_thread", 2, {{21, 24, -12, 11, 10, 8, 9, 9}}},
    {"packets", "heads_a_thread", 3, {{25, 3, 15, 9, 10, 5, 10, 9}}},
    {"packets", "heads_a_thread", 4, {{-13, -7, -6, -5, -7, -11, -3, -6}}},
    {"packets", "heads_a_thread", 6, {{-15, -9, -18, -49, -9, 2, -12, -14}}},
    {"packets", "early_weights", 0, {{43, 22, 22, 22, 22, 22, 22, 22}}},
    {"packets", "load_hint", 0, {{21, 23, 36, 24, 32, -4, 22, 19}}},
    {"packets", "load_hint", 2, {{22, -1, -15, -3, -10, 26, 0, 2}}},
    {"packets", "programmatic", 0, {{0, -26, -37, -6, 4, 8, -2, -7}}},
    {"packets", "programmatic", 1, {{43, 48, 59, 28, 17, 14, 24, 29}}},
    {"plain", "", 0, {{-43, -22, -22, -22, -22, -22, -22, -22}}},
    {"plain", "threads", 128, {{-25, -13, -13, -13, -13, -13, -13, -13}}},
    {"plain", "threads", 256, {{-18, -9, -9, -9, -9, -9, -9, -9}}},
    {"plain", "programmatic", 1, {{-43, -22, -22, -22, -22, -22, -22, -22}}},
};
// clang-format on

}  // namespace hone::rope_kv_append
