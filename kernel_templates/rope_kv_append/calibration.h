// What measurements add to the cost models (kernel_templates/calibration.h): thousandths of the
// logarithm of a factor, at floors of 1/16, 1/4, 1, 4, 16, 64, 256 and 1024 us. Written by
// bench/cost_fit; fitted anew rather than edited.
#pragma once

#include "kernel_templates/calibration.h"

namespace hone::rope_kv_append {

// clang-format off
inline constexpr Coefficient calibration[] = {
    {"", "", 0, {{-282, -163, -120, -250, -145, -95, -158, -152}}},
    {"packets", "", 0, {{43, 22, 22, 22, 22, 22, 22, 22}}},
    {"packets", "threads", 64, {{-13, -20, 13, 50, 29, 21, 12, 12}}},
    {"packets", "threads", 128, {{-13, -11, 7, 20, 14, 13, 4, 4}}},
    {"packets", "threads", 256, {{13, 4, -5, -29, -15, -15, -7, -7}}},
    {"packets", "threads", 384, {{56, 49, 6, -19, -6, 2, 13, 13}}},
    {"packets", "vector", 4, {{49, 37, 31, 28, 23, 19, 22, 26}}},
    {"packets", "vector", 8, {{-6, -14, -9, -6, -2, 3, 0, -4}}},
    {"packets", "heads_a_thread", 1, {{25, 7, 43, 58, 18, 19, 19, 24}}},
    {"packets", "heads_a_thread", 2, {{22, 26, -13, 13, 10, 8, 9, 9}}},
    {"packets", "heads_a_thread", 3, {{25, 5, 16, 7, 10, 4, 10, 9}}},
    {"packets", "heads_a_thread", 4, {{-12, -7, -5, -8, -8, -11, -4, -7}}},
    {"packets", "heads_a_thread", 6, {{-16, -9, -18, -49, -9, 2, -13, -14}}},
    {"packets", "early_weights", 0, {{43, 22, 22, 22, 22, 22, 22, 22}}},
    {"packets", "load_hint", 0, {{21, 24, 36, 24, 32, -5, 22, 19}}},
    {"packets", "load_hint", 2, {{22, -1, -15, -3, -10, 27, 0, 2}}},
    {"packets", "programmatic", 0, {{0, -24, -37, -4, 6, 8, -1, -7}}},
    {"packets", "programmatic", 1, {{43, 47, 58, 26, 16, 14, 23, 28}}},
    {"plain", "", 0, {{-43, -22, -22, -22, -22, -22, -22, -22}}},
    {"plain", "threads", 128, {{-25, -13, -13, -13, -13, -13, -13, -13}}},
    {"plain", "threads", 256, {{-18, -9, -9, -9, -9, -9, -9, -9}}},
    {"plain", "programmatic", 1, {{-43, -22, -22, -22, -22, -22, -22, -22}}},
};
// clang-format on

}  // namespace hone::rope_kv_append
