#include "runtime/dispatch/alignment.h"

#include <algorithm>

namespace hone::runtime {
namespace {

/// No access is wider, whatever the size of an element: a variant's number of elements is that of the
/// smallest.
constexpr std::int64_t widest_access_bytes = 16;

}  // namespace

std::int64_t alignment_bytes(const Problem& problem, const Candidate& candidate, std::size_t argument) {
    const Argument described = problem.family->arguments(problem)[argument];
    if (described.role == Role::workspace) return workspace_alignment;
    const std::int64_t element_bytes = size_bytes(described.dtype);
    const std::int64_t elements = candidate.variant->access_elements(problem, candidate.config);
    const std::int64_t bytes = std::min(element_bytes * elements, widest_access_bytes);
    // Arrays with one element a row (scale) are accessed element by element.
    const bool wide = described.shape.back() * element_bytes % bytes == 0;
    return wide ? bytes : element_bytes;
}

}  // namespace hone::runtime
