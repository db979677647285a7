// What measurements add to the cost models (kernel_templates/calibration.h): thousandths of the
// logarithm of a factor, at floors of 1/16, 1/4, 1, 4, 16, 64, 256 and 1024 us. Written by
// bench/cost_fit; fitted anew rather than edited.
#pragma once

#include "kernel_templates/calibration.h"

namespace hone::rope_kv_append {

// clang-format off
inline constexpr Coefficient calibration[] = {
    {"", "", 0, {{-283, -167, -123, -251, -149, -96, -159, -154}}},
    {"packets", "", 0, {{43, 22, 22, 22, 22, 22, 22, 22}}},
    {"packets", "threads", 64, {{-12, -22, 13, 53, 34, 23, 13, 13}}},
    {"packets", "threads", 128, {{-13, -10, 7, 22, 16, 14, 5, 5}}},
    {"packets", "threads", 256, {{12, 4, -4, -31, -18, -16, -8, -7}}},
    {"packets", "threads", 384, {{55, 50, 5, -22, -10, 1, 11, 11}}},
    {"packets", "vector", 4, {{49, 35, 31, 29, 25, 19, 22, 26}}},
    {"packets", "vector", 8, {{-6, -13, -9, -8, -3, 3, 0, -5}}},
    {"packets", "heads_a_thread", 1, {{23, 13, 44, 61, 24, 22, 20, 26}}},
    {"packets", "heads_a_thread", 2, {{23, 26, -14, 15, 12, 9, 10, 10}}},
    {"packets", "heads_a_thread", 3, {{26, 7, 16, 5, 9, 3, 10, 10}}},
    {"packets", "heads_a_thread", 4, {{-12, -9, -5, -9, -11, -13, -4, -8}}},
    {"packets", "heads_a_thread", 6, {{-18, -14, -18, -51, -13, 0, -14, -16}}},
    {"packets", "early_weights", 0, {{43, 22, 22, 22, 22, 22, 22, 22}}},
    {"packets", "load_hint", 0, {{21, 25, 35, 24, 32, -5, 22, 19}}},
    {"packets", "load_hint", 2, {{22, -2, -14, -2, -10, 27, -1, 3}}},
    {"packets", "programmatic", 0, {{-1, -23, -37, -3, 8, 8, -1, -6}}},
    {"packets", "programmatic", 1, {{44, 45, 58, 25, 14, 13, 22, 28}}},
    {"plain", "", 0, {{-43, -22, -22, -22, -22, -22, -22, -22}}},
    {"plain", "threads", 128, {{-25, -13, -13, -13, -13, -13, -13, -13}}},
    {"plain", "threads", 256, {{-18, -9, -9, -9, -9, -9, -9, -9}}},
    {"plain", "programmatic", 1, {{-43, -22, -22, -22, -22, -22, -22, -22}}},
};
// clang-format on

}  // namespace hone::rope_kv_append
