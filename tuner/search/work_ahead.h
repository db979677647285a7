// What a run has compilers do ahead of its races and second looks: which images it asks for, and by when they
// are needed. Measures nothing. Used by one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "tuner/search/problem_tuner.h"
#include "tuner/search/shared_work.h"

namespace hone::tuner {

class WorkAhead {
  public:
    /// For one hand of the work, whose run started then; `is_open` by problem: not answered already. All must
    /// outlive this.
    WorkAhead(SharedWork& work, std::size_t hand, const std::vector<bool>& is_open, RunContext& run,
              std::chrono::steady_clock::time_point start);

    /// Before the first race: what is sure about all of them.
    void begin();
    /// Of this hand's next problems the first whose images have been asked for and are there. Where one GPU
    /// tunes alone the order stays: what it lists would hang on how fast compilers are, where several share a
    /// workload it does already.
    [[nodiscard]] std::optional<std::size_t> first_ready() const;
    /// The problem is raced now with these, compilers go on with those behind it.
    void begin_race(const Problem& problem, const CandidateList& candidates);

    /// It has been raced and is to be looked at again.
    void add_look(std::size_t index, const cache::Trial& winner);
    /// The list of the look that begins now, the winner first, and compilers go on with the next looks;
    /// nothing where nobody may beat the winner.
    [[nodiscard]] std::optional<CandidateList> begin_look(std::size_t index, const cache::Trial& winner);

  private:
    [[nodiscard]] std::chrono::milliseconds now() const;
    [[nodiscard]] std::chrono::milliseconds until_planned() const { return planned_ - now(); }
    [[nodiscard]] bool are_all_tried() const;
    [[nodiscard]] bool compilers_want_more() const;

    void prefetch(const Problem& problem, const CandidateList& candidates, std::chrono::milliseconds until);
    void ask_for_images(const Problem& problem, const std::vector<Candidate>& candidates,
                        std::chrono::milliseconds until);
    void prefetch_races();
    void ask_for_known(std::span<const std::size_t> next, std::chrono::milliseconds until);
    void ask_for_look(const Problem& problem, const cache::Trial& winner);
    [[nodiscard]] std::optional<CandidateList> plan_look(std::size_t index, const cache::Trial& winner);
    void plan_looks();

    SharedWork& work_;
    const std::size_t hand_;
    const std::vector<Problem>& problems_;
    const std::vector<bool>& is_open_;
    RunContext& run_;
    const std::chrono::steady_clock::time_point start_;
    /// Turn of the problem after the current one, had nothing been waited for so far: behind the clock where
    /// compilers are behind. Images of all problems are asked for by this one plan, whenever that is, so that
    /// those that are needed first are made first.
    std::chrono::milliseconds planned_{};
    std::vector<bool> is_prefetched_;              ///< by problem
    std::vector<bool> is_known_asked_;             ///< images of its known candidates, ahead of its list
    std::map<std::size_t, cache::Trial> winners_;  ///< of what this hand has raced and is to look at again
    std::map<std::size_t, CandidateList> looks_;   ///< planned ones
};

}  // namespace hone::tuner
