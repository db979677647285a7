// What problems whose products share norms have in common (linear/shared_norm.cuh): slots of squares, and the
// blocks that variant plain and the reference walk over them with.
#pragma once

#include <cstdint>

#include "kernel_templates/kit/ceil_div.h"
#include "kernel_templates/linear/square_columns.cuh"

namespace hone::shared_norm_linear {

/// P has fields in, out and tokens.
template <class P>
struct Slots {
    [[nodiscard]] static double square_columns() { return linear::square_columns; }
    /// Slots of a row of x, and of a row of results.
    [[nodiscard]] std::int64_t x_slots() const { return ceil_div(self().in, linear::square_columns); }
    [[nodiscard]] std::int64_t slots() const { return ceil_div(self().out, linear::square_columns); }
    /// Blocks that walk over slots of so many tokens each: of the longest calls not all at once.
    [[nodiscard]] std::int64_t blocks(std::int64_t tokens_of_block) const {
        constexpr std::int64_t most = std::int64_t{1} << 24;
        const std::int64_t count = slots() * ceil_div(self().tokens, tokens_of_block);
        return count < most ? count : most;
    }

  private:
    [[nodiscard]] const P& self() const { return static_cast<const P&>(*this); }
};

}  // namespace hone::shared_norm_linear
