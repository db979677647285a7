// Which candidate serves a bucket: the order of docs/architecture.md as pure functions over stored winners.
// No device, no file, no clock; the dispatcher and `hone explain` both ask here, so they cannot disagree.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/layers.h"
#include "hone/report.h"
#include "kernel_templates/family.h"

namespace hone::runtime {

/// A stored winner that may be dispatched: right template, proven on a GPU, known to this build.
struct KnownWinner {
    Problem problem;  ///< that it won; of the kin's, in the words of the problem that asks
    Candidate candidate;
    Trust trust = Trust::none;
    std::string of_kin;       ///< "norm=no residual=no", where the kin differs; empty: its own
    int degree = 0;           ///< 1: of the kin, 2: of the kin's kin, and so on; 0: its own
    bool other_half = false;  ///< of the same in the other type of 16 bits, bf16 or fp16
    const cache::LoadedWinner* record = nullptr;  ///< lives as long as the WinnerTable
};

/// What is stored about one static problem.
struct Knowledge {
    std::vector<KnownWinner> winners;  ///< its own, ascending in the dynamic fields, then those of kin
    /// Its own records that may not be dispatched, and what of it or of its kin could not be read, one
    /// sentence each.
    std::vector<std::string> passed_over;
};

/// What the cache layers know of a family's static problem.
using WinnersOf =
    std::function<cache::StaticWinners(std::string_view family, std::string_view static_fields)>;

/// The snapshot of all cache layers: each static problem is asked for once, when something first needs it,
/// and kept. Thread-safe.
class WinnerTable {
  public:
    explicit WinnerTable(WinnersOf winners_of);
    explicit WinnerTable(cache::Winners winners);
    WinnerTable(const WinnerTable&) = delete;
    WinnerTable& operator=(const WinnerTable&) = delete;

    /// Everything stored for the problem's family and static fields, for those of its kin and the kin's, and
    /// for the same in the other type of 16 bits.
    [[nodiscard]] Knowledge find(const Problem& problem) const;

  private:
    [[nodiscard]] Knowledge find_own(const Problem& problem) const;
    [[nodiscard]] const cache::StaticWinners& stored(const Problem& problem) const;

    WinnersOf winners_of_;
    mutable std::mutex mutex_;
    /// Never changed once it is there, nor taken away.
    mutable std::map<std::pair<std::string, std::string>, cache::StaticWinners> stored_;
};

struct Choice {
    Candidate candidate;
    Origin origin = Origin::fallback;
    Trust trust = Trust::none;
    std::string measured_at;                      ///< "rows=16", "tokens=8 norm=no"
    const cache::LoadedWinner* record = nullptr;  ///< nullptr for a fallback
};

/// Doublings between two problems of a family, summed over its dynamic fields.
[[nodiscard]] double log2_distance(const Problem& a, const Problem& b);

/// Exact bucket, then the nearest measured bucket in log space (in each dynamic field at most a factor of
/// four away, or between two measured ones) of the problem or the same in the other type of 16 bits, then the
/// nearest of the kin's and of the kin's kin's, then the same among results of foreign GPUs, then the
/// fallback. Candidates that break a constraint here are not taken. nullopt: the family has no candidate for
/// this problem on this device at all. `problem` carries the bucket's upper edges in its dynamic fields.
[[nodiscard]] std::optional<Choice> choose(const Problem& problem, std::span<const KnownWinner> winners,
                                           const DeviceTraits& traits);

/// Sizes between two buckets of the problem's finer field for which a winner that was measured there is
/// chosen, on a GPU of this kind, ascending: each has a bucket of its own (BucketGrid).
[[nodiscard]] std::vector<std::int64_t> measured_between(const Problem& problem, const Knowledge& knowledge,
                                                         const DeviceTraits& traits);

/// The choice when stored results are left aside.
[[nodiscard]] std::optional<Choice> choose_fallback(const Problem& problem, const DeviceTraits& traits);

/// The command that would measure these values of the problem's last dynamic field on this machine.
[[nodiscard]] std::string tune_command(const Problem& problem, std::span<const std::int64_t> values);

}  // namespace hone::runtime
