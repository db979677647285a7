// What measurements add to the cost models (kernel_templates/calibration.h): thousandths of the
// logarithm of a factor, at floors of 1/16, 1/4, 1, 4, 16, 64, 256 and 1024 us. Written by
// bench/cost_fit; fitted anew rather than edited.
#pragma once

#include "kernel_templates/calibration.h"

namespace hone::attention_decode {

// clang-format off
inline constexpr Coefficient calibration[] = {
    {"", "", 0, {{-45, -137, -83, -34, 65, 0, -40, -43}}},
    {"ring", "", 0, {{0, 0, 1, 12, -10, -4, 2, 0}}},
    {"ring", "rows", 8, {{0, 0, 1, 12, -10, -4, 2, 0}}},
    {"ring", "warps", 4, {{2, -4, 3, 11, 2, 3, 3, 0}}},
    {"ring", "warps", 6, {{-2, -2, -4, 4, -8, -1, 0, 0}}},
    {"ring", "warps", 8, {{-1, 6, 3, -4, -4, -5, -2, 0}}},
    {"ring", "unit", 16, {{-3, -4, -5, 4, -10, -8, -9, -3}}},
    {"ring", "unit", 32, {{2, 6, 3, 5, 2, 3, 8, -1}}},
    {"ring", "unit", 64, {{1, -2, 3, 3, -1, 1, 2, 4}}},
    {"ring", "stages", 4, {{-5, -16, -26, 8, -1, 2, 2, -5}}},
    {"ring", "stages", 6, {{0, 0, -1, 4, -3, 0, 3, -4}}},
    {"ring", "stages", 8, {{-3, -5, -3, -2, -6, -2, -4, 1}}},
    {"ring", "stages", 12, {{-1, 1, 1, -3, -3, -4, -5, 2}}},
    {"ring", "stages", 16, {{9, 20, 30, 5, 3, -1, 5, 6}}},
    {"ring", "producers", 0, {{0, 5, 14, -18, -4, -5, 2, -9}}},
    {"ring", "producers", 4, {{0, -5, -13, 29, -5, 0, -1, 9}}},
    {"ring", "cluster", 1, {{36, 36, 24, 67, 36, 40, 47, 36}}},
    {"ring", "cluster", 2, {{31, 36, -43, 150, 36, 9, 20, 30}}},
    {"ring", "cluster", 4, {{6, -7, 1, 38, -20, 19, 5, 5}}},
    {"ring", "cluster", 8, {{-23, -35, 23, -87, -9, -24, -22, -22}}},
    {"ring", "cluster", 16, {{-50, -30, -4, -156, -52, -49, -49, -49}}},
    {"ring", "join", 0, {{-1, -1, 2, 3, -13, 2, 3, -1}}},
    {"ring", "join", 1, {{1, 1, -1, 8, 4, -6, -2, 2}}},
    {"ring", "side_by_side", 0, {{7, 7, 10, 36, 11, 0, -7, -3}}},
    {"ring", "side_by_side", 1, {{-7, -7, -9, -25, -21, -4, 9, 3}}},
    {"ring", "blocks_per_sm", 1, {{-14, -3, 2, -38, -41, -15, -5, -9}}},
    {"ring", "blocks_per_sm", 2, {{14, 3, -1, 50, 32, 11, 7, 9}}},
    {"registers", "", 0, {{-2, -2, -3, -9, -8, 2, 5, 2}}},
    {"registers", "rows", 8, {{-2, -2, -3, -9, -8, 2, 5, 2}}},
    {"registers", "warps", 4, {{14, 14, 14, 25, 21, 13, 12, 15}}},
    {"registers", "warps", 6, {{12, 12, 12, 15, 16, 13, 14, 12}}},
    {"registers", "warps", 8, {{-19, -19, -20, -38, -26, -17, -17, -16}}},
    {"registers", "warps", 12, {{-9, -9, -9, -11, -20, -7, -5, -8}}},
    {"registers", "unit", 16, {{-4, -4, -4, -10, -9, -2, -1, -2}}},
    {"registers", "unit", 32, {{3, 3, 2, 1, 1, 4, 6, 4}}},
    {"registers", "join", 0, {{3, 3, 3, 3, 2, 6, 2, 4}}},
    {"registers", "join", 1, {{-5, -5, -6, -12, -11, -4, 2, -2}}},
    {"registers", "side_by_side", 0, {{8, 8, 8, 11, 23, 9, 1, 6}}},
    {"registers", "side_by_side", 1, {{-10, -10, -10, -20, -32, -7, 4, -4}}},
    {"registers", "load_hint", 1, {{2, 2, 2, 5, 4, 2, -2, 2}}},
    {"registers", "load_hint", 2, {{-3, -3, -4, -14, -12, 0, 7, 0}}},
    {"registers", "blocks_per_sm", 1, {{4, 4, 3, -15, -1, 16, 19, 7}}},
    {"registers", "blocks_per_sm", 2, {{-6, -6, -6, 6, -7, -14, -14, -5}}},
    {"plain", "", 0, {{2, 2, 2, -2, 18, 2, -6, -2}}},
    {"plain", "rows", 2, {{66, 66, 66, 62, 86, 92, 83, 70}}},
    {"plain", "rows", 4, {{-64, -64, -64, -64, -68, -89, -90, -73}}},
    {"plain", "warps", 4, {{59, 59, 59, 72, 99, 60, 63, 59}}},
    {"plain", "warps", 8, {{-57, -57, -57, -74, -81, -58, -69, -61}}},
    {"plain", "unit", 16, {{-4, -4, -4, 5, 0, -16, -7, -6}}},
    {"plain", "unit", 32, {{6, 6, 6, -8, 18, 18, 1, 4}}},
    {"plain", "vector", 1, {{68, 68, 68, 81, 86, 93, 78, 68}}},
    {"plain", "vector", 2, {{-28, -28, -28, -36, -25, -39, -40, -28}}},
    {"plain", "vector", 4, {{-38, -38, -38, -48, -42, -52, -43, -42}}},
    {"plain", "join", 0, {{-1, -1, -1, 2, -5, 4, -2, -4}}},
    {"plain", "join", 1, {{3, 3, 3, -4, 23, -2, -4, 2}}},
    {"plain", "side_by_side", 0, {{5, 5, 5, 3, 8, 8, 0, 8}}},
    {"plain", "side_by_side", 1, {{-3, -3, -3, -6, 10, -5, -6, -11}}},
    {"plain", "blocks_per_sm", 1, {{74, 74, 74, 69, 70, 117, 116, 74}}},
    {"plain", "blocks_per_sm", 2, {{11, 11, 11, 22, 20, 17, 0, 7}}},
    {"plain", "blocks_per_sm", 4, {{-84, -84, -84, -93, -72, -132, -122, -84}}},
};
// clang-format on

}  // namespace hone::attention_decode
