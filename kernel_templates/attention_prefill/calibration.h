// What measurements add to the cost models (kernel_templates/calibration.h): thousandths of the
// logarithm of a factor, at floors of 1/16, 1/4, 1, 4, 16, 64, 256 and 1024 us. Written by
// bench/cost_fit; fitted anew rather than edited.
#pragma once

#include "kernel_templates/calibration.h"

namespace hone::attention_prefill {

// clang-format off
inline constexpr Coefficient calibration[] = {
    {"", "", 0, {{-86, 95, 411, 276, 50, 0, -19, -8}}},
    {"wgmma", "", 0, {{-4, -9, -29, -11, -10, -10, -10, -10}}},
    {"wgmma", "consumers", 1, {{-27, -31, -56, -51, -30, -33, -34, -35}}},
    {"wgmma", "consumers", 2, {{23, 23, 27, 40, 19, 23, 24, 25}}},
    {"wgmma", "tile_n", 64, {{-54, -48, -80, -93, -55, -55, -55, -55}}},
    {"wgmma", "tile_n", 80, {{-14, -26, -31, -4, -2, -14, -13, -13}}},
    {"wgmma", "tile_n", 96, {{-1, -2, -28, 3, -7, -11, -9, -4}}},
    {"wgmma", "tile_n", 112, {{11, 14, 11, 15, 24, 10, 6, 8}}},
    {"wgmma", "tile_n", 128, {{-19, -21, 5, -39, -52, -22, -13, -19}}},
    {"wgmma", "tile_n", 144, {{31, 30, 50, 42, 33, 34, 31, 32}}},
    {"wgmma", "tile_n", 176, {{42, 44, 44, 66, 47, 47, 42, 41}}},
    {"wgmma", "stages", 2, {{1, -4, -18, 2, -10, -4, -7, -7}}},
    {"wgmma", "stages", 3, {{-5, -4, -11, -13, 0, -6, -4, -3}}},
    {"wgmma", "query_stages", 1, {{-1, -5, -22, -4, -6, -6, -8, -11}}},
    {"wgmma", "query_stages", 2, {{-4, -4, -7, -7, -4, -5, -3, 0}}},
    {"wgmma", "blocks_per_sm", 1, {{-36, -53, -66, -36, -41, -38, -37, -36}}},
    {"wgmma", "blocks_per_sm", 2, {{32, 44, 37, 26, 31, 28, 26, 26}}},
    {"wgmma", "query_in_registers", 0, {{-12, -26, -30, -9, -1, -2, 2, 1}}},
    {"wgmma", "query_in_registers", 1, {{8, 17, 1, -2, -10, -8, -13, -12}}},
    {"wgmma", "section_mib", 4, {{-12, -6, -17, -13, -11, -9, -14, -10}}},
    {"wgmma", "section_mib", 8, {{-3, -5, -14, -11, -16, -10, 1, -7}}},
    {"wgmma", "section_mib", 24, {{10, 2, 2, 14, 16, 9, 2, 7}}},
    {"wgmma", "dynamic", 0, {{-12, -17, -38, -27, -22, -10, -18, -24}}},
    {"wgmma", "dynamic", 1, {{8, 8, 9, 16, 11, -1, 8, 14}}},
    {"wgmma", "softmax_first", 0, {{-8, -12, -23, -13, -8, -8, -13, -14}}},
    {"wgmma", "softmax_first", 1, {{3, 3, -6, 2, -2, -3, 2, 3}}},
    {"wgmma", "late_maxima", 0, {{-12, -11, -32, -28, -23, -28, -19, -18}}},
    {"wgmma", "late_maxima", 1, {{8, 2, 3, 17, 13, 18, 9, 8}}},
    {"wgmma", "programmatic", 0, {{-29, -53, -51, -20, -17, -11, -26, -26}}},
    {"wgmma", "programmatic", 1, {{25, 44, 22, 10, 7, 0, 15, 15}}},
    {"mma", "", 0, {{-9, -1, 21, 3, 3, 3, 3, 3}}},
    {"mma", "warps", 4, {{-9, -1, 21, 3, 3, 3, 3, 3}}},
    {"mma", "warp_rows", 16, {{-65, -65, -83, -53, -53, -53, -53, -53}}},
    {"mma", "warp_rows", 32, {{56, 64, 104, 56, 56, 56, 56, 56}}},
    {"mma", "tile_n", 32, {{-33, -33, 5, -15, -15, -15, -15, -15}}},
    {"mma", "tile_n", 64, {{-7, -1, -13, -5, -5, -5, -5, -5}}},
    {"mma", "tile_n", 96, {{22, 24, 23, 17, 17, 17, 17, 17}}},
    {"mma", "tile_n", 128, {{8, 9, 6, 6, 6, 6, 6, 6}}},
    {"mma", "stages", 2, {{-2, -5, -4, -3, -3, -3, -3, -3}}},
    {"mma", "stages", 3, {{-3, 0, 7, 1, 1, 1, 1, 1}}},
    {"mma", "stages", 4, {{-4, 4, 19, 5, 5, 5, 5, 5}}},
    {"mma", "query_in_registers", 0, {{-31, -33, -11, -19, -19, -19, -19, -19}}},
    {"mma", "query_in_registers", 1, {{21, 32, 32, 22, 21, 21, 21, 21}}},
    {"mma", "blocks_per_sm", 1, {{-4, -5, -3, -3, -3, -3, -3, -3}}},
    {"mma", "blocks_per_sm", 2, {{-23, -35, -21, -21, -20, -20, -20, -20}}},
    {"mma", "blocks_per_sm", 3, {{18, 39, 45, 27, 26, 26, 26, 26}}},
    {"mma", "programmatic", 0, {{-32, -57, -30, -30, -30, -30, -30, -30}}},
    {"mma", "programmatic", 1, {{23, 55, 52, 32, 32, 32, 32, 32}}},
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
