// How the pointers of a call have to be aligned for a candidate.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel_templates/family.h"

namespace hone::runtime {

/// Bytes of which the pointer of an argument, and its row stride, must be multiples. At least the element's
/// own size.
[[nodiscard]] std::int64_t alignment_bytes(const Problem& problem, const Candidate& candidate,
                                           std::size_t argument);

}  // namespace hone::runtime
