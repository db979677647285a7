// What measurements add to the cost models (kernel_templates/calibration.h): thousandths of the
// logarithm of a factor, at floors of 1/16, 1/4, 1, 4, 16, 64, 256 and 1024 us. Written by
// bench/cost_fit; fitted anew rather than edited.
#pragma once

#include "kernel_templates/calibration.h"

namespace hone::attention_prefill {

// clang-format off
inline constexpr Coefficient calibration[] = {
    {"", "", 0, {{-94, 64, 399, 266, 42, -21, -29, -5}}},
    {"wgmma", "", 0, {{-6, -6, -29, -10, -10, -10, -10, -10}}},
    {"wgmma", "consumers", 1, {{-30, -31, -58, -51, -31, -36, -35, -36}}},
    {"wgmma", "consumers", 2, {{24, 24, 29, 41, 20, 26, 25, 26}}},
    {"wgmma", "tile_n", 64, {{-50, -38, -75, -87, -57, -51, -51, -51}}},
    {"wgmma", "tile_n", 80, {{-19, -25, -33, -11, -6, -19, -18, -18}}},
    {"wgmma", "tile_n", 96, {{-13, -10, -39, -14, -17, -18, -14, -14}}},
    {"wgmma", "tile_n", 112, {{12, 13, 4, 11, 26, 7, 2, 2}}},
    {"wgmma", "tile_n", 128, {{-22, -31, 4, -41, -53, -18, -17, -20}}},
    {"wgmma", "tile_n", 144, {{35, 33, 52, 49, 37, 34, 38, 40}}},
    {"wgmma", "tile_n", 176, {{51, 52, 58, 82, 60, 54, 50, 51}}},
    {"wgmma", "stages", 2, {{-3, -3, -19, -3, -11, -5, -10, -9}}},
    {"wgmma", "stages", 3, {{-3, -4, -9, -7, 1, -5, -1, -1}}},
    {"wgmma", "query_stages", 1, {{-4, -5, -24, -4, -7, -10, -10, -12}}},
    {"wgmma", "query_stages", 2, {{-2, -2, -5, -6, -3, -1, -1, 2}}},
    {"wgmma", "blocks_per_sm", 1, {{-38, -52, -73, -38, -44, -38, -39, -38}}},
    {"wgmma", "blocks_per_sm", 2, {{32, 46, 45, 28, 34, 28, 29, 28}}},
    {"wgmma", "query_in_registers", 0, {{-12, -24, -33, -12, -4, -5, 2, 2}}},
    {"wgmma", "query_in_registers", 1, {{6, 18, 4, 2, -7, -6, -12, -12}}},
    {"wgmma", "section_mib", 4, {{-10, -8, -19, -14, -11, -9, -11, -9}}},
    {"wgmma", "section_mib", 8, {{-3, -3, -13, -11, -13, -12, 8, 7}}},
    {"wgmma", "section_mib", 24, {{6, 5, 3, 14, 14, 11, -7, -8}}},
    {"wgmma", "dynamic", 0, {{-16, -16, -40, -30, -25, -21, -19, -14}}},
    {"wgmma", "dynamic", 1, {{10, 10, 11, 20, 15, 10, 9, 4}}},
    {"wgmma", "softmax_first", 0, {{-9, -12, -24, -15, -8, -9, -11, -13}}},
    {"wgmma", "softmax_first", 1, {{3, 5, -5, 4, -3, -2, 1, 3}}},
    {"wgmma", "late_maxima", 0, {{-6, -6, -29, -10, -10, -10, -10, -10}}},
    {"wgmma", "programmatic", 0, {{-30, -47, -50, -27, -16, -13, -26, -26}}},
    {"wgmma", "programmatic", 1, {{24, 41, 21, 17, 6, 3, 16, 16}}},
    {"mma", "", 0, {{-7, -4, 21, 2, 2, 2, 2, 2}}},
    {"mma", "warps", 4, {{-7, -4, 21, 2, 2, 2, 2, 2}}},
    {"mma", "warp_rows", 16, {{-62, -67, -81, -52, -52, -52, -52, -52}}},
    {"mma", "warp_rows", 32, {{55, 63, 102, 55, 55, 55, 55, 55}}},
    {"mma", "tile_n", 32, {{-32, -36, 3, -16, -16, -16, -16, -16}}},
    {"mma", "tile_n", 64, {{-8, -3, -12, -6, -6, -6, -6, -6}}},
    {"mma", "tile_n", 96, {{23, 26, 24, 18, 18, 18, 18, 18}}},
    {"mma", "tile_n", 128, {{9, 10, 6, 6, 6, 6, 6, 6}}},
    {"mma", "stages", 2, {{-3, -6, -4, -4, -3, -3, -3, -3}}},
    {"mma", "stages", 3, {{-2, 1, 7, 1, 1, 1, 1, 1}}},
    {"mma", "stages", 4, {{-2, 1, 18, 5, 4, 4, 4, 4}}},
    {"mma", "query_in_registers", 0, {{-28, -40, -13, -21, -20, -20, -20, -20}}},
    {"mma", "query_in_registers", 1, {{21, 36, 34, 23, 23, 23, 23, 23}}},
    {"mma", "blocks_per_sm", 1, {{-3, -5, -3, -3, -3, -3, -3, -3}}},
    {"mma", "blocks_per_sm", 2, {{-27, -39, -24, -24, -23, -23, -23, -23}}},
    {"mma", "blocks_per_sm", 3, {{23, 40, 48, 29, 28, 28, 28, 28}}},
    {"mma", "programmatic", 0, {{-34, -63, -33, -32, -32, -32, -32, -32}}},
    {"mma", "programmatic", 1, {{26, 59, 54, 35, 35, 35, 35, 35}}},
    {"plain", "", 0, {{14, 10, 8, 8, 8, 8, 8, 8}}},
    {"plain", "tile_m", 32, {{14, 10, 8, 8, 8, 8, 8, 8}}},
    {"plain", "tile_n", 32, {{10, 7, 6, 6, 6, 6, 6, 6}}},
    {"plain", "tile_n", 64, {{4, 3, 2, 2, 2, 2, 2, 2}}},
    {"plain", "thread_m", 4, {{14, 10, 8, 8, 8, 8, 8, 8}}},
    {"plain", "columns", 16, {{7, 5, 4, 4, 4, 4, 4, 4}}},
    {"plain", "columns", 32, {{7, 5, 4, 4, 4, 4, 4, 4}}},
    {"plain", "vector", 4, {{14, 10, 8, 8, 8, 8, 8, 8}}},
    {"plain", "programmatic", 1, {{14, 10, 8, 8, 8, 8, 8, 8}}},
};
// clang-format on

}  // namespace hone::attention_prefill
