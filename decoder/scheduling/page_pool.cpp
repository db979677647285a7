#include "decoder/scheduling/page_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "decoder/error.h"

namespace hone::decoder {

PagePool::PagePool(int pages, int page_size) : page_size_(page_size) {
    if (pages < 1 || page_size < 1)
        throw DecoderError(
            fmt::format("a KV cache of {} pages of {} tokens; allowed: from 1 of each", pages, page_size));
    pages_.resize(static_cast<std::size_t>(pages));
    for (int page = 0; page < pages; ++page) at(page).idle = idle_.insert(idle_.end(), page);
}

PagePool::Key PagePool::key_of(std::uint64_t before, std::span<const int> tokens) {
    const auto bytes = std::as_bytes(tokens);
    Key key(reinterpret_cast<const char*>(&before), sizeof before);
    return key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void PagePool::use(int page) {
    if (at(page).users++ == 0) idle_.erase(at(page).idle);
}

void PagePool::forget(int page) {
    Page& forgotten = at(page);
    if (forgotten.content == 0) return;
    const auto known = known_.find(forgotten.key);
    std::erase(known->second, page);
    if (known->second.empty()) known_.erase(known);
    forgotten.content = 0;
    forgotten.key.clear();
}

/// One that is in use, which takes no page from those that are not; else the first.
int PagePool::found_of(const Alike& alike) const {
    const auto used = std::ranges::find_if(alike, [&](int page) { return users(page) > 0; });
    return used == alike.end() ? alike.front() : *used;
}

bool PagePool::is_known(int page) const {
    const Page& one = pages_[static_cast<std::size_t>(page)];
    return one.content != 0 && found_of(known_.at(one.key)) == page;
}

void PagePool::give_out_first(int page) { idle_.splice(idle_.begin(), idle_, at(page).idle); }
void PagePool::give_out_last(int page) { idle_.splice(idle_.end(), idle_, at(page).idle); }

std::vector<int> PagePool::take_known(std::span<const int> tokens) {
    std::vector<int> taken;
    const auto size = static_cast<std::size_t>(page_size_);
    for (std::uint64_t before = 0; tokens.size() >= size; tokens = tokens.subspan(size)) {
        const auto found = known_.find(key_of(before, tokens.first(size)));
        if (found == known_.end()) break;
        const int page = found_of(found->second);
        use(page);
        taken.push_back(page);
        before = at(page).content;
    }
    return taken;
}

std::optional<int> PagePool::take() {
    if (idle_.empty()) return std::nullopt;
    const int page = idle_.front();
    forget(page);
    use(page);
    return page;
}

// The last page goes first, so that of two that are idle the one that stands further back in its text is
// given out first: what stands behind a page that is gone cannot be found any more. Where several hold the
// same, the one that is found counts as unused from now on, whichever of them was used.
void PagePool::release(std::span<const int> pages) {
    for (auto page = pages.rbegin(); page != pages.rend(); ++page) {
        Page& released = at(*page);
        if (--released.users > 0) continue;
        released.idle = idle_.insert(idle_.begin(), *page);
        if (released.content == 0) continue;
        const int found = found_of(known_.at(released.key));
        if (users(found) == 0) give_out_last(found);
    }
}

PagePool::Published PagePool::published(std::span<const int> known) const {
    if (known.empty()) return {};
    return {known.size(), pages_[static_cast<std::size_t>(known.back())].content};
}

void PagePool::publish(std::span<const int> pages, std::span<const int> tokens, Published& so_far) {
    const auto size = static_cast<std::size_t>(page_size_);
    for (; so_far.pages < pages.size() && tokens.size() >= (so_far.pages + 1) * size; ++so_far.pages) {
        const int number = pages[so_far.pages];
        Page& page = at(number);
        page.key = key_of(so_far.content, tokens.subspan(so_far.pages * size, size));
        Alike& alike = known_[page.key];
        // Of two that computed it at once both count: what follows stands behind either, and goes on to be
        // found when the other's page is given out.
        page.content = alike.empty() ? ++last_content_ : at(alike.front()).content;
        for (const int other : alike) {
            if (users(other) == 0) give_out_first(other);  // this one, which is in use, is found in its place
        }
        alike.push_back(number);
        so_far.content = page.content;
    }
}

}  // namespace hone::decoder
