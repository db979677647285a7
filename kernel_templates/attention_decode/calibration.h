// What measurements add to the cost models (kernel_templates/calibration.h): thousandths of the
// logarithm of a factor, at floors of 1/16, 1/4, 1, 4, 16, 64, 256 and 1024 us. Written by
// bench/cost_fit; fitted anew rather than edited.
#pragma once

#include "kernel_templates/calibration.h"

namespace hone::attention_decode {

// clang-format off
inline constexpr Coefficient calibration[] = {
    {"", "", 0, {{-58, -156, -121, -66, 61, 6, -34, -50}}},
    {"ring", "", 0, {{1, 1, 2, 15, -9, -2, 3, 1}}},
    {"ring", "rows", 8, {{1, 1, 2, 15, -9, -2, 3, 1}}},
    {"ring", "warps", 4, {{1, -4, 2, 9, 3, 3, 3, -1}}},
    {"ring", "warps", 6, {{0, -1, -5, 6, -7, -1, 0, 1}}},
    {"ring", "warps", 8, {{1, 7, 5, 0, -4, -4, -1, 1}}},
    {"ring", "unit", 16, {{-4, -7, -5, 6, -10, -9, -11, -8}}},
    {"ring", "unit", 32, {{2, 5, 2, 8, 1, 4, 11, 3}}},
    {"ring", "unit", 64, {{3, 3, 5, 2, 1, 2, 3, 6}}},
    {"ring", "stages", 4, {{-7, -23, -26, 11, 3, 2, 2, -3}}},
    {"ring", "stages", 6, {{1, -1, -1, 3, 0, 1, 6, -1}}},
    {"ring", "stages", 8, {{-3, -3, -5, -1, -8, -2, -5, -2}}},
    {"ring", "stages", 12, {{0, 4, 1, -6, -4, -3, -4, 0}}},
    {"ring", "stages", 16, {{11, 25, 34, 8, 0, 0, 4, 7}}},
    {"ring", "producers", 0, {{1, 9, 12, -14, -7, -3, 1, -13}}},
    {"ring", "producers", 4, {{0, -8, -10, 29, -2, 1, 2, 13}}},
    {"ring", "cluster", 1, {{19, 19, -6, 28, 41, 25, 28, 18}}},
    {"ring", "cluster", 2, {{22, 28, -32, 116, 21, 6, 15, 22}}},
    {"ring", "cluster", 4, {{13, -2, 10, 33, 12, 18, 12, 12}}},
    {"ring", "cluster", 8, {{-17, -27, 27, -68, -23, -18, -18, -18}}},
    {"ring", "cluster", 16, {{-35, -17, 3, -94, -60, -34, -34, -34}}},
    {"ring", "join", 0, {{4, 4, 18, 18, -13, 2, 3, -1}}},
    {"ring", "join", 1, {{-2, -2, -16, -3, 5, -4, 0, 2}}},
    {"ring", "side_by_side", 0, {{9, 9, 21, 41, 16, -1, -8, -9}}},
    {"ring", "side_by_side", 1, {{-7, -7, -19, -26, -25, -2, 11, 9}}},
    {"ring", "blocks_per_sm", 1, {{-10, -2, 1, -19, -38, -15, -2, -5}}},
    {"ring", "blocks_per_sm", 2, {{11, 3, 1, 34, 29, 12, 6, 6}}},
    {"ring", "ahead", 0, {{1, 1, 2, 15, -9, -2, 3, 1}}},
    {"registers", "", 0, {{-2, -2, -3, -13, -10, 2, 5, 2}}},
    {"registers", "rows", 8, {{-2, -2, -3, -13, -10, 2, 5, 2}}},
    {"registers", "warps", 4, {{13, 13, 13, 20, 23, 13, 11, 14}}},
    {"registers", "warps", 6, {{8, 8, 8, 8, 6, 10, 12, 8}}},
    {"registers", "warps", 8, {{-14, -14, -15, -28, -19, -13, -13, -12}}},
    {"registers", "warps", 12, {{-9, -9, -9, -13, -20, -8, -6, -8}}},
    {"registers", "unit", 16, {{-4, -4, -4, -12, -7, -1, 0, -2}}},
    {"registers", "unit", 32, {{1, 1, 1, -1, -3, 3, 5, 4}}},
    {"registers", "join", 0, {{1, 1, 1, 2, -4, 4, 1, 3}}},
    {"registers", "join", 1, {{-3, -3, -4, -15, -6, -2, 3, 0}}},
    {"registers", "side_by_side", 0, {{8, 8, 8, 10, 21, 12, 2, 7}}},
    {"registers", "side_by_side", 1, {{-11, -11, -12, -23, -31, -10, 3, -5}}},
    {"registers", "load_hint", 1, {{0, 0, 0, -2, 0, 2, -1, 2}}},
    {"registers", "load_hint", 2, {{-3, -3, -3, -11, -10, -1, 6, 0}}},
    {"registers", "blocks_per_sm", 1, {{2, 2, 1, -15, -7, 14, 16, 6}}},
    {"registers", "blocks_per_sm", 2, {{-5, -5, -5, 2, -3, -12, -12, -4}}},
    {"plain", "", 0, {{1, 1, 1, -2, 19, 1, -8, -3}}},
    {"plain", "rows", 2, {{65, 65, 65, 62, 87, 90, 82, 70}}},
    {"plain", "rows", 4, {{-64, -64, -64, -64, -68, -89, -90, -73}}},
    {"plain", "warps", 4, {{58, 58, 58, 71, 99, 59, 62, 58}}},
    {"plain", "warps", 8, {{-57, -57, -57, -74, -81, -58, -69, -61}}},
    {"plain", "unit", 16, {{-4, -4, -4, 6, 0, -17, -8, -6}}},
    {"plain", "unit", 32, {{5, 5, 5, -8, 18, 17, 0, 3}}},
    {"plain", "vector", 1, {{67, 67, 67, 81, 86, 93, 77, 67}}},
    {"plain", "vector", 2, {{-28, -28, -28, -36, -25, -40, -41, -28}}},
    {"plain", "vector", 4, {{-38, -38, -38, -48, -42, -53, -44, -42}}},
    {"plain", "join", 0, {{-1, -1, -1, 3, -4, 3, -3, -4}}},
    {"plain", "join", 1, {{2, 2, 2, -5, 23, -2, -5, 1}}},
    {"plain", "side_by_side", 0, {{5, 5, 5, 4, 9, 7, -1, 8}}},
    {"plain", "side_by_side", 1, {{-3, -3, -3, -6, 10, -6, -7, -11}}},
    {"plain", "blocks_per_sm", 1, {{74, 74, 74, 69, 70, 117, 116, 74}}},
    {"plain", "blocks_per_sm", 2, {{11, 11, 11, 22, 20, 16, -1, 7}}},
    {"plain", "blocks_per_sm", 4, {{-84, -84, -84, -93, -72, -132, -123, -84}}},
};
// clang-format on

}  // namespace hone::attention_decode
