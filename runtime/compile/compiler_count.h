// How many compilers may run beside each other.
#pragma once

namespace hone::runtime {

/// The cores that this thread may run on, but no more than fit into the available memory at 400 MB each; at
/// least one.
[[nodiscard]] int compiler_count();

}  // namespace hone::runtime
