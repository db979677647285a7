// What prepared operators will choose on the GPUs of an architecture, from what is stored: the rules are
// dispatch's own. Used by one thread.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "cli/stored.h"
#include "runtime/dispatch/choice.h"

namespace hone::cli {

class Dispatched {
  public:
    /// `winners` are those of all layers, the user's first, of whatever problem and GPU.
    Dispatched(const DeviceTraits& traits, const std::vector<StoredTrial>& winners);

    /// One for each kind of GPU that has winners, or the default; each once.
    [[nodiscard]] std::vector<Candidate> choices(const Problem& problem);
    /// The problems, behind them those between their sizes that have buckets of their own on one of the GPUs,
    /// and those that take other kernels: not all operators are tuned at all sizes.
    [[nodiscard]] std::vector<Problem> with_sizes_between(std::vector<Problem> problems);
    /// The same of those alone that have buckets of their own: what few kernels are to serve.
    [[nodiscard]] std::vector<Problem> with_buckets_between(std::vector<Problem> problems);

  private:
    void add_finer(std::vector<Problem>& problems);
    void add_other_choices(std::vector<Problem>& problems);
    /// By kind of GPU what is known of a static problem.
    const std::vector<runtime::Knowledge>& known(const Problem& problem);

    DeviceTraits traits_;
    std::deque<runtime::WinnerTable> tables_;                       ///< one for each kind of GPU
    std::map<std::string, std::vector<runtime::Knowledge>> known_;  ///< by static part
};

}  // namespace hone::cli
