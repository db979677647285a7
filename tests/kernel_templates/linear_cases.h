// What the cases of linear (linear_test.cpp) and those of its variants (linear_<variant>_test.cpp) share: its
// problems, and a model of tiles in shared memory.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "kernel_templates/catalog.h"
#include "kernel_templates/linear/linear.h"
#include "kernel_templates/space.h"
#include "tests/kernel_templates/drawn_cases.h"

namespace hone::linear_cases {

inline Problem problem_of(const std::string& text) { return *parse_problem("linear " + text); }

using test::tunable;

/// The tunables of a candidate, by name, as the geometries of the variants take them.
inline auto tunables_of(const Candidate& candidate) {
    return [&candidate](std::string_view name) { return static_cast<int>(tunable(candidate, name)); };
}

inline const std::vector<std::string> shapes{
    "dtype=bf16 in=4096 out=4096",
    "dtype=fp16 in=14336 out=4096",
    "dtype=bf16 in=4096 out=14336 gated=yes activation=silu",
    "dtype=bf16 in=18944 out=3584 bias=yes residual=yes activation=gelu_erf",
    "dtype=bf16 in=1024 out=1000",
    "dtype=fp32 in=768 out=3072 bias=yes activation=relu",
    "dtype=fp32 in=4096 out=14336 gated=yes activation=silu",
    "dtype=fp32 in=4 out=4",
    "dtype=fp16 in=77 out=5",
    "dtype=bf16 in=8 out=8",
    "dtype=bf16 in=4096 out=32003"};
inline const std::vector<std::int64_t> token_counts{1, 3, 8, 17, 64, 128, 333, 8192};

/// Where the copy engine puts byte `offset` of a box whose rows have `span` bytes, and where the tensor cores
/// look for it: chunks of 16 bytes are exchanged within lines of 128 bytes (PTX ISA, swizzling modes).
inline int swizzled(int offset, int span) {
    const int bits = span == 128 ? 7 : span == 64 ? 3 : 1;
    return offset ^ ((offset >> 7 & bits) << 4);
}

/// Element (row, column) of the tile of which operand: 0 x, 1 weight, 2 up.
using Place = std::tuple<int, int, int>;
using SharedBytes = std::map<int, Place>;

/// As many columns as 128 bytes hold.
inline void copy_box(SharedBytes& shared, int to, int operand, int rows, int element_bytes = 2) {
    for (int row = 0; row < rows; ++row) {
        for (int column = 0; column < 128 / element_bytes; ++column) {
            const bool fresh = shared
                                   .emplace(swizzled(to + row * 128 + element_bytes * column, 128),
                                            Place{operand, row, column})
                                   .second;
            CHECK(fresh);
        }
    }
}

/// What the 32 bytes `step` of an operand's row are, read as the descriptors of device/wgmma.cuh say.
inline Place read_operand(const SharedBytes& shared, int base, int row, int step, int column,
                          int element_bytes = 2) {
    const int offset = base + row / 8 * 1024 + row % 8 * 128 + step * 32 + element_bytes * column;
    const auto found = shared.find(swizzled(offset, 128));
    REQUIRE(found != shared.end());
    return found->second;
}

}  // namespace hone::linear_cases
