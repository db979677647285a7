// What measurements add to the cost models (kernel_templates/calibration.h): thousandths of the
// logarithm of a factor, at floors of 1/16, 1/4, 1, 4, 16, 64, 256 and 1024 us. Written by
// bench/cost_fit; fitted anew rather than edited.
#pragma once

#include "kernel_templates/calibration.h"

namespace hone::attention_prefill {

// clang-format off
inline constexpr Coefficient calibration[] = {
    {"", "", 0, {{-87, 92, 405, 278, 50, -11, -16, 12}}},
    {"wgmma", "", 0, {{-6, -9, -29, -11, -11, -11, -11, -11}}},
    {"wgmma", "consumers", 1, {{-28, -32, -56, -52, -30, -33, -35, -36}}},
    {"wgmma", "consumers", 2, {{22, 23, 26, 40, 19, 22, 24, 24}}},
    {"wgmma", "tile_n", 64, {{-51, -48, -80, -93, -54, -54, -54, -54}}},
    {"wgmma", "tile_n", 80, {{-15, -26, -31, -4, -1, -15, -15, -14}}},
    {"wgmma", "tile_n", 96, {{-6, -4, -28, 2, -8, -13, -9, -6}}},
    {"wgmma", "tile_n", 112, {{10, 14, 10, 15, 23, 10, 5, 5}}},
    {"wgmma", "tile_n", 128, {{-19, -20, 5, -40, -51, -20, -14, -18}}},
    {"wgmma", "tile_n", 144, {{31, 30, 50, 42, 32, 33, 32, 32}}},
    {"wgmma", "tile_n", 176, {{43, 45, 45, 66, 48, 48, 44, 44}}},
    {"wgmma", "stages", 2, {{-1, -5, -18, 2, -11, -4, -7, -7}}},
    {"wgmma", "stages", 3, {{-5, -4, -11, -13, -1, -7, -4, -5}}},
    {"wgmma", "query_stages", 1, {{-3, -6, -22, -4, -6, -7, -8, -12}}},
    {"wgmma", "query_stages", 2, {{-4, -4, -7, -7, -5, -5, -3, 0}}},
    {"wgmma", "blocks_per_sm", 1, {{-38, -54, -66, -37, -43, -39, -38, -37}}},
    {"wgmma", "blocks_per_sm", 2, {{32, 44, 37, 26, 31, 28, 27, 26}}},
    {"wgmma", "query_in_registers", 0, {{-14, -26, -30, -9, -1, -2, 2, 1}}},
    {"wgmma", "query_in_registers", 1, {{8, 17, 1, -2, -10, -10, -13, -12}}},
    {"wgmma", "section_mib", 4, {{-9, -6, -17, -13, -11, -6, -5, -6}}},
    {"wgmma", "section_mib", 8, {{-3, -5, -13, -12, -14, -15, 8, 9}}},
    {"wgmma", "section_mib", 24, {{6, 2, 2, 13, 13, 11, -14, -15}}},
    {"wgmma", "dynamic", 0, {{-12, -15, -35, -26, -23, -22, -11, -6}}},
    {"wgmma", "dynamic", 1, {{5, 5, 6, 15, 12, 11, 0, -5}}},
    {"wgmma", "softmax_first", 0, {{-8, -12, -23, -13, -9, -9, -13, -14}}},
    {"wgmma", "softmax_first", 1, {{2, 3, -6, 2, -2, -3, 2, 2}}},
    {"wgmma", "late_maxima", 0, {{-13, -11, -31, -28, -18, -18, -16, -16}}},
    {"wgmma", "late_maxima", 1, {{6, 2, 2, 17, 7, 7, 4, 5}}},
    {"wgmma", "programmatic", 0, {{-29, -52, -50, -20, -17, -11, -26, -26}}},
    {"wgmma", "programmatic", 1, {{23, 43, 21, 9, 6, -1, 15, 15}}},
    {"mma", "", 0, {{-7, -1, 21, 3, 3, 3, 3, 3}}},
    {"mma", "warps", 4, {{-7, -1, 21, 3, 3, 3, 3, 3}}},
    {"mma", "warp_rows", 16, {{-63, -65, -83, -52, -53, -53, -53, -53}}},
    {"mma", "warp_rows", 32, {{56, 64, 104, 56, 56, 56, 56, 56}}},
    {"mma", "tile_n", 32, {{-28, -29, 7, -12, -12, -12, -12, -12}}},
    {"mma", "tile_n", 64, {{-8, -2, -13, -6, -6, -6, -6, -6}}},
    {"mma", "tile_n", 96, {{21, 22, 22, 16, 16, 16, 16, 16}}},
    {"mma", "tile_n", 128, {{8, 8, 5, 5, 5, 5, 5, 5}}},
    {"mma", "stages", 2, {{-2, -6, -5, -4, -3, -3, -3, -3}}},
    {"mma", "stages", 3, {{-3, 0, 7, 1, 1, 1, 1, 1}}},
    {"mma", "stages", 4, {{-3, 6, 19, 6, 6, 6, 6, 6}}},
    {"mma", "query_in_registers", 0, {{-28, -30, -10, -17, -17, -17, -17, -17}}},
    {"mma", "query_in_registers", 1, {{20, 29, 31, 21, 20, 20, 20, 20}}},
    {"mma", "blocks_per_sm", 1, {{-4, -6, -3, -3, -3, -3, -3, -3}}},
    {"mma", "blocks_per_sm", 2, {{-22, -34, -20, -20, -19, -19, -19, -19}}},
    {"mma", "blocks_per_sm", 3, {{18, 39, 44, 27, 25, 25, 25, 25}}},
    {"mma", "programmatic", 0, {{-31, -57, -30, -29, -29, -29, -29, -29}}},
    {"mma", "programmatic", 1, {{24, 56, 51, 33, 33, 33, 33, 33}}},
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
