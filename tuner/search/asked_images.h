// The images that a run has asked for: a candidate that has one costs no compiling at the other sizes of its
// static problem. May be used by any thread.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernel_templates/family.h"

namespace hone::tuner {

class AskedImages {
  public:
    explicit AskedImages(Arch arch) : arch_(arch) {}

    void add(const Problem& problem, const std::vector<Candidate>& candidates) {
        const std::scoped_lock lock(mutex_);
        std::set<std::string>& own = by_problem_[to_string(problem)];
        for (const Candidate& candidate : candidates) {
            std::string added = name(problem, candidate);
            all_.insert(added);
            own.insert(std::move(added));
        }
    }
    /// Its race begins: its images are there, or needed before anybody else's.
    void begin(const Problem& problem) {
        const std::scoped_lock lock(mutex_);
        const std::set<std::string>& own = by_problem_[to_string(problem)];
        begun_.insert(own.begin(), own.end());
    }
    /// Once a problem has asked for its own, what others have asked for since is none of its: it would wait
    /// for images that are needed later, unless their race has begun.
    [[nodiscard]] bool has(const Problem& problem, const Candidate& candidate) const {
        const std::string wanted = name(problem, candidate);
        const std::scoped_lock lock(mutex_);
        const auto own = by_problem_.find(to_string(problem));
        if (own == by_problem_.end()) return all_.contains(wanted);
        return own->second.contains(wanted) || begun_.contains(wanted);
    }

  private:
    [[nodiscard]] std::string name(const Problem& problem, const Candidate& candidate) const {
        return to_string(static_part(problem)) + '\n' + to_string(image_candidate(candidate, arch_));
    }

    const Arch arch_;
    mutable std::mutex mutex_;
    std::set<std::string> all_;
    std::set<std::string> begun_;
    std::map<std::string, std::set<std::string>> by_problem_;
};

}  // namespace hone::tuner
