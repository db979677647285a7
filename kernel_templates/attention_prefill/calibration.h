// What measurements add to the cost models (kernel_templates/calibration.h): thousandths of the
// logarithm of a factor, at floors of 1/16, 1/4, 1, 4, 16, 64, 256 and 1024 us. Written by
// bench/cost_fit; fitted anew rather than edited.
#pragma once

#include "kernel_templates/calibration.h"

namespace hone::attention_prefill {

// clang-format off
inline constexpr Coefficient calibration[] = {
    {"", "", 0, {{-94, 58, 385, 272, 59, -6, -13, 7}}},
    {"wgmma", "", 0, {{-7, -8, -31, -12, -12, -12, -12, -12}}},
    {"wgmma", "consumers", 1, {{-23, -24, -55, -46, -20, -27, -26, -29}}},
    {"wgmma", "consumers", 2, {{16, 17, 23, 34, 8, 16, 15, 17}}},
    {"wgmma", "tile_n", 64, {{-49, -37, -76, -84, -53, -50, -50, -50}}},
    {"wgmma", "tile_n", 80, {{-17, -25, -32, -8, -2, -15, -14, -15}}},
    {"wgmma", "tile_n", 96, {{-13, -10, -39, -15, -18, -19, -15, -15}}},
    {"wgmma", "tile_n", 112, {{11, 13, 3, 9, 24, 6, 1, 1}}},
    {"wgmma", "tile_n", 128, {{-23, -31, 4, -42, -56, -19, -18, -22}}},
    {"wgmma", "tile_n", 144, {{34, 32, 52, 48, 35, 33, 37, 39}}},
    {"wgmma", "tile_n", 176, {{50, 51, 57, 81, 58, 52, 48, 50}}},
    {"wgmma", "stages", 2, {{-3, -3, -21, -3, -11, -5, -10, -9}}},
    {"wgmma", "stages", 3, {{-4, -4, -11, -9, 0, -6, -2, -2}}},
    {"wgmma", "query_stages", 1, {{-5, -5, -26, -4, -8, -10, -10, -13}}},
    {"wgmma", "query_stages", 2, {{-3, -3, -6, -7, -3, -1, -1, 1}}},
    {"wgmma", "blocks_per_sm", 1, {{-43, -54, -77, -49, -56, -47, -48, -46}}},
    {"wgmma", "blocks_per_sm", 2, {{36, 46, 45, 37, 44, 35, 36, 34}}},
    {"wgmma", "query_in_registers", 0, {{-13, -25, -34, -13, -4, -6, 1, 1}}},
    {"wgmma", "query_in_registers", 1, {{5, 17, 3, 1, -7, -6, -13, -12}}},
    {"wgmma", "section_mib", 4, {{-10, -9, -20, -14, -12, -10, -12, -10}}},
    {"wgmma", "section_mib", 8, {{-3, -4, -14, -11, -14, -12, 8, 7}}},
    {"wgmma", "section_mib", 24, {{6, 5, 2, 14, 14, 11, -8, -9}}},
    {"wgmma", "dynamic", 0, {{-17, -17, -42, -31, -26, -21, -20, -15}}},
    {"wgmma", "dynamic", 1, {{9, 9, 10, 19, 15, 10, 8, 3}}},
    {"wgmma", "softmax_first", 0, {{-10, -12, -25, -16, -8, -9, -12, -14}}},
    {"wgmma", "softmax_first", 1, {{2, 4, -7, 4, -3, -2, 0, 2}}},
    {"wgmma", "programmatic", 0, {{-31, -48, -51, -28, -17, -14, -27, -27}}},
    {"wgmma", "programmatic", 1, {{23, 41, 20, 16, 5, 2, 15, 15}}},
    {"mma", "", 0, {{-6, -2, 23, 4, 4, 4, 4, 4}}},
    {"mma", "warps", 4, {{-6, -2, 23, 4, 4, 4, 4, 4}}},
    {"mma", "warp_rows", 16, {{-62, -66, -79, -51, -52, -52, -52, -52}}},
    {"mma", "warp_rows", 32, {{55, 64, 103, 55, 55, 55, 55, 55}}},
    {"mma", "tile_n", 32, {{-31, -35, 4, -15, -16, -16, -16, -16}}},
    {"mma", "tile_n", 64, {{-7, -3, -11, -6, -5, -5, -5, -5}}},
    {"mma", "tile_n", 96, {{23, 26, 24, 18, 18, 18, 18, 18}}},
    {"mma", "tile_n", 128, {{9, 10, 6, 6, 6, 6, 6, 6}}},
    {"mma", "stages", 2, {{-3, -5, -3, -3, -3, -3, -3, -3}}},
    {"mma", "stages", 3, {{-2, 1, 8, 2, 2, 2, 2, 2}}},
    {"mma", "stages", 4, {{-2, 2, 19, 5, 5, 5, 5, 5}}},
    {"mma", "query_in_registers", 0, {{-28, -39, -11, -20, -20, -20, -20, -20}}},
    {"mma", "query_in_registers", 1, {{21, 37, 35, 23, 23, 23, 23, 23}}},
    {"mma", "blocks_per_sm", 1, {{-3, -5, -3, -3, -3, -3, -3, -3}}},
    {"mma", "blocks_per_sm", 2, {{-26, -38, -23, -23, -22, -22, -22, -22}}},
    {"mma", "blocks_per_sm", 3, {{23, 41, 49, 30, 28, 28, 28, 28}}},
    {"mma", "programmatic", 0, {{-33, -62, -32, -32, -32, -32, -32, -32}}},
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
