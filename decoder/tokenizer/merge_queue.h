// Which pair of a word's symbols a BPE model looks at next: the lowest rank, and of these the leftmost. A
// heap has those of a short word. Those of a long one, which a heap would draw through memory for each step,
// lie in lists by rank: they come from left to right, so that each list is in order, and a rank's list is
// closed before those of higher ranks are looked at. What comes later than that is left to the heap. One
// thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace hone::decoder {

class MergeQueue {
  public:
    struct Candidate {
        std::uint32_t rank = 0;
        std::uint32_t position = 0;
        friend bool operator==(const Candidate&, const Candidate&) = default;
    };

    /// For another word, of so many symbols.
    void begin(std::size_t symbols) {
        heap_.clear();
        lists_.clear();
        list_.clear();
        next_ = 0;
        listed_from_ = symbols > most_in_heap ? 0 : no_list;
        heaped_ = 0;
    }

    void push(Candidate candidate) {
        if (candidate.rank >= listed_from_) return lists_[candidate.rank].push_back(candidate.position);
        heap_.push_back(key(candidate));
        std::ranges::push_heap(heap_, std::greater{});
        ++heaped_;
    }

    /// None: the queue is empty.
    [[nodiscard]] std::optional<Candidate> pop() {
        if (heap_.empty() && next_ == list_.size() && !open_list()) return std::nullopt;
        if (next_ == list_.size()) return pop_heap();
        const Candidate first = front_of_list();
        if (!heap_.empty() && heap_.front() < key(first)) return pop_heap();
        ++next_;
        return first;
    }

    /// Candidates of this word that went through the heap.
    [[nodiscard]] std::size_t heaped() const { return heaped_; }

  private:
    using Key = std::uint64_t;  ///< rank and position
    static constexpr std::size_t most_in_heap = 256;
    static constexpr std::uint64_t no_list = std::numeric_limits<std::uint64_t>::max();

    static Key key(Candidate candidate) { return Key{candidate.rank} << 32 | candidate.position; }
    [[nodiscard]] Candidate front_of_list() const {
        return {static_cast<std::uint32_t>(listed_from_ - 1), list_[next_]};
    }

    Candidate pop_heap() {
        std::ranges::pop_heap(heap_, std::greater{});
        const Key least = heap_.back();
        heap_.pop_back();
        return {static_cast<std::uint32_t>(least >> 32), static_cast<std::uint32_t>(least)};
    }

    /// That of the lowest rank. It had positions from each lower rank in turn, and may not be in order.
    bool open_list() {
        if (lists_.empty()) return false;
        auto lowest = lists_.extract(lists_.begin());
        list_ = std::move(lowest.mapped());
        next_ = 0;
        listed_from_ = std::uint64_t{lowest.key()} + 1;
        if (!std::ranges::is_sorted(list_)) std::ranges::sort(list_);
        return true;
    }

    std::vector<Key> heap_;
    std::map<std::uint32_t, std::vector<std::uint32_t>> lists_;  ///< positions, of ranks from listed_from_ on
    std::vector<std::uint32_t> list_;                            ///< of the rank before
    std::size_t next_ = 0;                                       ///< of list_
    std::uint64_t listed_from_ = no_list;
    std::size_t heaped_ = 0;
};

}  // namespace hone::decoder
