// The images that a run has asked for: a candidate that has one costs no compiling at the other sizes of its
// static problem. Used by one thread.
#pragma once

#include <set>
#include <string>

#include "kernel_templates/family.h"

namespace hone::tuner {

class AskedImages {
  public:
    explicit AskedImages(Arch arch) : arch_(arch) {}

    void add(const Problem& problem, const Candidate& candidate) { names_.insert(name(problem, candidate)); }
    [[nodiscard]] bool has(const Problem& problem, const Candidate& candidate) const {
        return names_.contains(name(problem, candidate));
    }

  private:
    [[nodiscard]] std::string name(const Problem& problem, const Candidate& candidate) const {
        return to_string(static_part(problem)) + '\n' + to_string(image_candidate(candidate, arch_));
    }

    Arch arch_;
    std::set<std::string> names_;
};

}  // namespace hone::tuner
