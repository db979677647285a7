// The images that a run has asked for: a candidate that has one costs no compiling at the other sizes of its
// static problem. May be used by any thread.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "kernel_templates/family.h"

namespace hone::tuner {

class AskedImages {
  public:
    explicit AskedImages(Arch arch) : arch_(arch) {}

    void add(const Problem& problem, const Candidate& candidate) {
        std::string added = name(problem, candidate);
        const std::scoped_lock lock(mutex_);
        names_.insert(std::move(added));
    }
    [[nodiscard]] bool has(const Problem& problem, const Candidate& candidate) const {
        const std::string wanted = name(problem, candidate);
        const std::scoped_lock lock(mutex_);
        return names_.contains(wanted);
    }

  private:
    [[nodiscard]] std::string name(const Problem& problem, const Candidate& candidate) const {
        return to_string(static_part(problem)) + '\n' + to_string(image_candidate(candidate, arch_));
    }

    const Arch arch_;
    mutable std::mutex mutex_;
    std::set<std::string> names_;
};

}  // namespace hone::tuner
