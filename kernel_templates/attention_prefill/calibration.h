// What measurements add to the cost models (kernel_templates/calibration.h): thousandths of the
// logarithm of a factor, at floors of 1/16, 1/4, 1, 4, 16, 64, 256 and 1024 us. Written by
// bench/cost_fit; fitted anew rather than edited.
#pragma once

#include "kernel_templates/calibration.h"

namespace hone::attention_prefill {

// clang-format off
inline constexpr Coefficient calibration[] = {
    {"", "", 0, {{-85, 96, 412, 277, 44, -18, -27, -11}}},
    {"wgmma", "", 0, {{-4, -8, -29, -10, -10, -10, -10, -10}}},
    {"wgmma", "consumers", 1, {{-27, -31, -55, -51, -30, -33, -34, -35}}},
    {"wgmma", "consumers", 2, {{23, 23, 27, 41, 19, 23, 24, 25}}},
    {"wgmma", "tile_n", 64, {{-54, -48, -80, -92, -54, -55, -55, -55}}},
    {"wgmma", "tile_n", 80, {{-15, -26, -31, -5, -3, -15, -15, -14}}},
    {"wgmma", "tile_n", 96, {{-1, -2, -28, 3, -8, -13, -10, -5}}},
    {"wgmma", "tile_n", 112, {{11, 14, 10, 16, 24, 9, 5, 7}}},
    {"wgmma", "tile_n", 128, {{-18, -21, 6, -39, -51, -20, -13, -18}}},
    {"wgmma", "tile_n", 144, {{32, 30, 50, 42, 33, 34, 33, 33}}},
    {"wgmma", "tile_n", 176, {{42, 45, 45, 66, 48, 49, 44, 42}}},
    {"wgmma", "stages", 2, {{1, -4, -18, 2, -10, -3, -7, -7}}},
    {"wgmma", "stages", 3, {{-5, -4, -11, -13, 0, -7, -4, -3}}},
    {"wgmma", "query_stages", 1, {{-1, -5, -22, -4, -6, -6, -8, -10}}},
    {"wgmma", "query_stages", 2, {{-3, -3, -6, -7, -4, -4, -2, 0}}},
    {"wgmma", "blocks_per_sm", 1, {{-36, -53, -66, -36, -42, -38, -37, -36}}},
    {"wgmma", "blocks_per_sm", 2, {{32, 44, 37, 26, 31, 28, 26, 26}}},
    {"wgmma", "query_in_registers", 0, {{-12, -26, -30, -9, 0, -1, 3, 1}}},
    {"wgmma", "query_in_registers", 1, {{8, 17, 1, -2, -10, -9, -13, -11}}},
    {"wgmma", "section_mib", 4, {{-12, -6, -17, -13, -11, -9, -12, -10}}},
    {"wgmma", "section_mib", 8, {{-2, -4, -14, -11, -15, -10, 2, -6}}},
    {"wgmma", "section_mib", 24, {{10, 2, 2, 14, 16, 9, 1, 5}}},
    {"wgmma", "dynamic", 0, {{-17, -22, -42, -29, -27, -19, -26, -30}}},
    {"wgmma", "dynamic", 1, {{13, 13, 13, 19, 17, 9, 16, 19}}},
    {"wgmma", "softmax_first", 0, {{-7, -12, -23, -13, -8, -8, -13, -13}}},
    {"wgmma", "softmax_first", 1, {{3, 4, -6, 2, -2, -2, 3, 3}}},
    {"wgmma", "late_maxima", 0, {{-10, -10, -31, -28, -17, -18, -14, -14}}},
    {"wgmma", "late_maxima", 1, {{6, 2, 2, 18, 7, 7, 3, 4}}},
    {"wgmma", "programmatic", 0, {{-29, -53, -51, -20, -17, -11, -26, -26}}},
    {"wgmma", "programmatic", 1, {{25, 45, 22, 10, 7, 0, 16, 16}}},
    {"mma", "", 0, {{-10, -2, 21, 3, 2, 2, 2, 2}}},
    {"mma", "warps", 4, {{-10, -2, 21, 3, 2, 2, 2, 2}}},
    {"mma", "warp_rows", 16, {{-66, -66, -83, -53, -54, -54, -54, -54}}},
    {"mma", "warp_rows", 32, {{56, 64, 104, 56, 56, 56, 56, 56}}},
    {"mma", "tile_n", 32, {{-33, -33, 5, -15, -15, -15, -15, -15}}},
    {"mma", "tile_n", 64, {{-7, -1, -13, -5, -5, -5, -5, -5}}},
    {"mma", "tile_n", 96, {{22, 24, 23, 17, 17, 17, 17, 17}}},
    {"mma", "tile_n", 128, {{8, 9, 6, 6, 6, 6, 6, 6}}},
    {"mma", "stages", 2, {{-2, -5, -5, -3, -3, -3, -3, -3}}},
    {"mma", "stages", 3, {{-3, 0, 7, 1, 1, 1, 1, 1}}},
    {"mma", "stages", 4, {{-4, 4, 19, 5, 5, 5, 5, 5}}},
    {"mma", "query_in_registers", 0, {{-31, -33, -11, -19, -19, -19, -19, -19}}},
    {"mma", "query_in_registers", 1, {{21, 31, 32, 21, 21, 21, 21, 21}}},
    {"mma", "blocks_per_sm", 1, {{-4, -5, -3, -3, -3, -3, -3, -3}}},
    {"mma", "blocks_per_sm", 2, {{-23, -35, -21, -21, -20, -20, -20, -20}}},
    {"mma", "blocks_per_sm", 3, {{17, 39, 45, 27, 26, 26, 26, 26}}},
    {"mma", "programmatic", 0, {{-32, -57, -31, -30, -30, -30, -30, -30}}},
    {"mma", "programmatic", 1, {{22, 55, 51, 32, 32, 32, 32, 32}}},
    {"plain", "", 0, {{13, 10, 8, 8, 8, 8, 8, 8}}},
    {"plain", "tile_m", 32, {{13, 10, 8, 8, 8, 8, 8, 8}}},
    {"plain", "tile_n", 32, {{10, 7, 6, 6, 6, 6, 6, 6}}},
    {"plain", "tile_n", 64, {{4, 3, 2, 2, 2, 2, 2, 2}}},
    {"plain", "thread_m", 4, {{13, 10, 8, 8, 8, 8, 8, 8}}},
    {"plain", "columns", 16, {{7, 5, 4, 4, 4, 4, 4, 4}}},
    {"plain", "columns", 32, {{7, 5, 4, 4, 4, 4, 4, 4}}},
    {"plain", "vector", 4, {{13, 10, 8, 8, 8, 8, 8, 8}}},
    {"plain", "programmatic", 1, {{13, 10, 8, 8, 8, 8, 8, 8}}},
};
// clang-format on

}  // namespace hone::attention_prefill
