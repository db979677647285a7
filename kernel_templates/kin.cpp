#include "kernel_templates/kin.h"

#include <algorithm>

namespace hone {

std::vector<Problem> with_kin(const Problem& problem) {
    std::vector<Problem> line{problem};
    while (line.back().family->kin != nullptr) {
        const std::optional<Problem> kin = line.back().family->kin(line.back());
        if (!kin) break;
        line.push_back(*kin);
    }
    return line;
}

std::optional<Candidate> from_kin(std::span<const Problem> line, Candidate candidate) {
    for (std::size_t i = line.size() - 1; i-- > 0;) {
        if (line[i].family->from_kin != nullptr) candidate = line[i].family->from_kin(line[i], candidate);
    }
    const std::span<const Variant* const> ours = line.front().family->variants;
    if (std::ranges::find(ours, candidate.variant) == ours.end()) return std::nullopt;
    return candidate;
}

}  // namespace hone
