#include "runtime/alignment.h"

namespace hone::runtime {

std::int64_t alignment_bytes(const Problem& problem, const Candidate& candidate, std::size_t argument) {
    const Argument described = problem.family->arguments(problem)[argument];
    if (described.role == Role::workspace) return workspace_alignment;
    const std::int64_t elements = candidate.variant->access_elements(problem, candidate.config);
    // Arrays with one element a row (scale) are accessed element by element.
    const bool wide = described.shape.back() % elements == 0;
    return size_bytes(described.dtype) * (wide ? elements : 1);
}

}  // namespace hone::runtime
