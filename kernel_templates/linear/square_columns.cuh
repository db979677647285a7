// A norm that two products share (shared_norm.cuh), in numbers. Plain C++, for host and device alike.
#pragma once

namespace hone::linear {

/// Columns whose squares a slot adds up. Tiles of tuned configs are multiples of it.
enum : int { square_columns = 16 };

}  // namespace hone::linear
