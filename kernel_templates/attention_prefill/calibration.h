// What measurements add to the cost models (kernel_templates/calibration.h): thousandths of the
// logarithm of a factor, at floors of 1/16, 1/4, 1, 4, 16, 64, 256 and 1024 us. Written by
// bench/cost_fit; fitted anew rather than edited.
#pragma once

#include "kernel_templates/calibration.h"

namespace hone::attention_prefill {

// clang-format off
inline constexpr Coefficient calibration[] = {
    {"", "", 0, {{-97, 62, 385, 261, 37, -26, -33, -9}}},
    {"wgmma", "", 0, {{-7, -7, -31, -11, -11, -11, -11, -11}}},
    {"wgmma", "consumers", 1, {{-30, -31, -59, -52, -31, -37, -36, -37}}},
    {"wgmma", "consumers", 2, {{24, 24, 28, 40, 20, 26, 25, 26}}},
    {"wgmma", "tile_n", 64, {{-50, -38, -75, -87, -57, -51, -51, -51}}},
    {"wgmma", "tile_n", 80, {{-19, -25, -33, -11, -6, -20, -18, -18}}},
    {"wgmma", "tile_n", 96, {{-13, -10, -39, -15, -17, -18, -14, -14}}},
    {"wgmma", "tile_n", 112, {{12, 13, 3, 11, 26, 7, 2, 2}}},
    {"wgmma", "tile_n", 128, {{-23, -31, 3, -41, -53, -18, -17, -21}}},
    {"wgmma", "tile_n", 144, {{35, 33, 52, 49, 37, 34, 38, 40}}},
    {"wgmma", "tile_n", 176, {{51, 52, 57, 82, 59, 54, 50, 51}}},
    {"wgmma", "stages", 2, {{-3, -3, -21, -3, -12, -6, -10, -9}}},
    {"wgmma", "stages", 3, {{-4, -4, -11, -8, 0, -6, -1, -2}}},
    {"wgmma", "query_stages", 1, {{-5, -5, -26, -5, -8, -10, -10, -13}}},
    {"wgmma", "query_stages", 2, {{-2, -2, -5, -7, -3, -1, -1, 2}}},
    {"wgmma", "blocks_per_sm", 1, {{-39, -53, -75, -39, -45, -39, -40, -39}}},
    {"wgmma", "blocks_per_sm", 2, {{32, 45, 44, 28, 34, 27, 29, 27}}},
    {"wgmma", "query_in_registers", 0, {{-12, -25, -34, -13, -4, -5, 1, 1}}},
    {"wgmma", "query_in_registers", 1, {{6, 17, 3, 1, -7, -6, -13, -13}}},
    {"wgmma", "section_mib", 4, {{-10, -9, -19, -14, -12, -10, -12, -10}}},
    {"wgmma", "section_mib", 8, {{-3, -4, -14, -11, -14, -12, 8, 7}}},
    {"wgmma", "section_mib", 24, {{6, 5, 2, 14, 14, 10, -8, -9}}},
    {"wgmma", "dynamic", 0, {{-16, -17, -41, -31, -26, -21, -19, -14}}},
    {"wgmma", "dynamic", 1, {{9, 9, 10, 19, 15, 10, 8, 3}}},
    {"wgmma", "softmax_first", 0, {{-9, -12, -25, -15, -8, -9, -12, -13}}},
    {"wgmma", "softmax_first", 1, {{3, 5, -6, 4, -3, -2, 0, 2}}},
    {"wgmma", "programmatic", 0, {{-30, -48, -51, -28, -17, -14, -27, -27}}},
    {"wgmma", "programmatic", 1, {{23, 41, 20, 17, 5, 2, 15, 15}}},
    {"mma", "", 0, {{-7, -3, 23, 3, 3, 3, 3, 3}}},
    {"mma", "warps", 4, {{-7, -3, 23, 3, 3, 3, 3, 3}}},
    {"mma", "warp_rows", 16, {{-62, -67, -79, -52, -52, -52, -52, -52}}},
    {"mma", "warp_rows", 32, {{55, 64, 103, 55, 55, 55, 55, 55}}},
    {"mma", "tile_n", 32, {{-31, -36, 4, -16, -16, -16, -16, -16}}},
    {"mma", "tile_n", 64, {{-8, -3, -11, -6, -6, -6, -6, -6}}},
    {"mma", "tile_n", 96, {{23, 26, 24, 18, 18, 18, 18, 18}}},
    {"mma", "tile_n", 128, {{9, 10, 6, 6, 6, 6, 6, 6}}},
    {"mma", "stages", 2, {{-3, -5, -4, -3, -3, -3, -3, -3}}},
    {"mma", "stages", 3, {{-2, 1, 8, 1, 2, 2, 2, 2}}},
    {"mma", "stages", 4, {{-2, 1, 19, 5, 5, 5, 5, 5}}},
    {"mma", "query_in_registers", 0, {{-28, -40, -11, -20, -20, -20, -20, -20}}},
    {"mma", "query_in_registers", 1, {{21, 37, 34, 23, 23, 23, 23, 23}}},
    {"mma", "blocks_per_sm", 1, {{-3, -5, -3, -3, -3, -3, -3, -3}}},
    {"mma", "blocks_per_sm", 2, {{-26, -38, -23, -23, -22, -22, -22, -22}}},
    {"mma", "blocks_per_sm", 3, {{23, 40, 49, 29, 28, 28, 28, 28}}},
    {"mma", "programmatic", 0, {{-34, -63, -33, -32, -32, -32, -32, -32}}},
    {"mma", "programmatic", 1, {{27, 60, 56, 36, 36, 36, 36, 36}}},
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
