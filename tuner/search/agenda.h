// Who tunes what where several GPUs of one kind share a workload: each, a "hand", has a list of problems, and
// one whose list has ended takes what is last on the longest list of another, so that all end together.
// What they measure they tell each other. May be used by any thread, each hand by one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "cache/records.h"

namespace hone::tuner {

class Agenda {
  public:
    enum class Turn : std::uint8_t {
        race,
        look,  ///< a second look at a problem that has been raced
    };
    struct Task {
        Turn turn = Turn::race;
        std::size_t problem = 0;  ///< index
        bool is_own = true;       ///< from this hand's list
    };

    /// Each hand's problems in their order, at least one hand; what each problem takes, by index.
    Agenda(std::vector<std::vector<std::size_t>> lists, std::vector<std::chrono::milliseconds> costs);

    /// What this hand does next, which ends what it did: races before looks, its own before those of others,
    /// `first` before all others of its list, if that has it yet. `is_open`, by problem: what has an answer
    /// already is taken from nobody but the lost. Waits while others are at work or have a list yet: a hand
    /// that is lost leaves it behind. Nothing when all has ended.
    [[nodiscard]] std::optional<Task> next(std::size_t hand, const std::vector<bool>& is_open,
                                           std::optional<std::size_t> first = {});
    /// The next race of this hand's list, whatever others do; nothing when that has ended.
    [[nodiscard]] std::optional<std::size_t> next_own(std::size_t hand);
    /// The problem that this hand has raced is to be looked at again.
    void add_look(std::size_t hand, std::size_t problem);
    /// It is not, after all.
    void drop_look(std::size_t hand, std::size_t problem);

    /// This hand is lost: the others do what it was at and all that it had yet to do, and do not wait for it.
    /// False where no other is left.
    [[nodiscard]] bool leave(std::size_t hand);
    enum class Meeting : std::uint8_t { none, all_raced, parts_listed, all_done };
    /// Waits until every hand that is not lost has come so far, too.
    void meet(std::size_t hand, Meeting meeting);

    /// The problems that this hand will probably race next, up to `most`: where its own list is shorter also
    /// those that it would take from others.
    [[nodiscard]] std::vector<std::size_t> ahead(std::size_t hand, const std::vector<bool>& is_open,
                                                 std::size_t most) const;
    /// The same of looks, its own alone.
    [[nodiscard]] std::vector<std::size_t> looks_ahead(std::size_t hand, std::size_t most) const;
    /// Races that wait on this hand's list.
    [[nodiscard]] std::vector<std::size_t> waiting(std::size_t hand) const;
    /// Problems that this hand has taken so far or that wait for it.
    [[nodiscard]] std::size_t count(std::size_t hand) const;

    [[nodiscard]] bool is_shared() const { return hands_.size() > 1; }
    void tell(std::size_t hand, const cache::Trial& trial);
    /// What others told since this was last asked.
    [[nodiscard]] std::vector<cache::Trial> news(std::size_t hand);
    /// Forgets what was told so far.
    void skip_news(std::size_t hand);

  private:
    struct Hand {
        std::deque<std::size_t> races;
        std::deque<std::size_t> looks;
        std::optional<Task> at_work;
        std::size_t taken = 0;  ///< races
        std::size_t told = 0;   ///< of `news_`
        bool is_lost = false;
        Meeting met = Meeting::none;
    };
    struct News {
        std::size_t from = 0;
        cache::Trial trial;
    };

    [[nodiscard]] std::optional<std::size_t> take_race(std::vector<Hand>& hands, std::size_t hand,
                                                       const std::vector<bool>& is_open) const;
    [[nodiscard]] Hand* longest_other(std::vector<Hand>& hands, std::size_t hand,
                                      const std::vector<bool>& is_open) const;
    [[nodiscard]] std::optional<Task> take(std::size_t hand, const std::vector<bool>& is_open);
    [[nodiscard]] bool may_leave_something() const;

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Hand> hands_;
    std::vector<std::chrono::milliseconds> costs_;
    std::deque<News> news_;
};

}  // namespace hone::tuner
