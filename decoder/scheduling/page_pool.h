// The pages of a KV cache: who uses which, and what the full ones hold, so that texts that begin alike share
// them. Knows numbers of pages, not their memory. One thread.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace hone::decoder {

class PagePool {
  public:
    /// Throws DecoderError unless both are positive.
    PagePool(int pages, int page_size);

    [[nodiscard]] int size() const { return static_cast<int>(pages_.size()); }
    [[nodiscard]] int page_size() const { return page_size_; }
    /// Pages that take() would give out: those that nobody uses, whatever they hold.
    [[nodiscard]] int available() const { return static_cast<int>(idle_.size()); }
    /// Pages for so many tokens.
    [[nodiscard]] int pages_for(int tokens) const { return (tokens + page_size_ - 1) / page_size_; }

    /// The pages that hold the beginning of `tokens`, as far as full ones are known; each has one more user.
    [[nodiscard]] std::vector<int> take_known(std::span<const int> tokens);
    /// A page that nobody uses, with its first user; what it held is forgotten. Of those first one that
    /// nobody would find, because it holds nothing or another page is found in its place, else the one whose
    /// text has been unused the longest.
    [[nodiscard]] std::optional<int> take();
    /// `pages`, in the order of the text, have one user less.
    void release(std::span<const int> pages);
    /// How far pages of a text have been published.
    struct Published {
        std::size_t pages = 0;
        std::uint64_t content = 0;  ///< the number of what they hold
    };
    /// Of pages that take_known() gave.
    [[nodiscard]] Published published(std::span<const int> known) const;
    /// What the pages of a text hold from now on, as far as they are full: `tokens` are those that were
    /// computed. Full pages are not written any more. Goes on from `so_far`: a text grows by a page at a
    /// time, and those before are many.
    void publish(std::span<const int> pages, std::span<const int> tokens, Published& so_far);

    /// For tests: how many use a page.
    [[nodiscard]] int users(int page) const { return pages_[static_cast<std::size_t>(page)].users; }
    /// Whether others find the page by what it holds.
    [[nodiscard]] bool is_known(int page) const;

  private:
    /// A page's tokens and the number of what stands before them: equal for equal beginnings of texts.
    using Key = std::string;
    struct Page {
        int users = 0;
        std::uint64_t content = 0;        ///< the number of what it holds and all before it; 0: not published
        Key key;                          ///< of that
        std::list<int>::iterator idle{};  ///< its place there, while nobody uses it
    };
    [[nodiscard]] Page& at(int page) { return pages_[static_cast<std::size_t>(page)]; }
    [[nodiscard]] static Key key_of(std::uint64_t before, std::span<const int> tokens);
    using Alike = std::vector<int>;
    [[nodiscard]] int found_of(const Alike& alike) const;
    void use(int page);
    void forget(int page);
    void give_out_first(int page);
    void give_out_last(int page);

    int page_size_;
    std::vector<Page> pages_;
    /// Nobody uses them; the next to be given out first. Those that nobody would find stand in front of all
    /// others.
    std::list<int> idle_;
    /// The pages that hold the same, as texts that computed it at once made them: one is found, and another
    /// when that is given out.
    std::unordered_map<Key, Alike> known_;
    std::uint64_t last_content_ = 0;
};

}  // namespace hone::decoder
