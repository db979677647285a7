#include "decoder/scheduling/page_pool.h"

#include <fmt/format.h>

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

void PagePool::forget(Page& page) {
    if (page.content == 0) return;
    known_.erase(page.key);
    page.content = 0;
    page.key.clear();
}

std::vector<int> PagePool::take_known(std::span<const int> tokens) {
    std::vector<int> taken;
    const auto size = static_cast<std::size_t>(page_size_);
    for (std::uint64_t before = 0; tokens.size() >= size; tokens = tokens.subspan(size)) {
        const auto found = known_.find(key_of(before, tokens.first(size)));
        if (found == known_.end()) break;
        use(found->second);
        taken.push_back(found->second);
        before = at(found->second).content;
    }
    return taken;
}

std::optional<int> PagePool::take() {
    if (idle_.empty()) return std::nullopt;
    const int page = idle_.front();
    forget(at(page));
    use(page);
    return page;
}

// The last page goes first, so that of two that are idle the one that stands further back in its text is
// given out first: what stands behind a page that is gone cannot be found any more.
void PagePool::release(std::span<const int> pages) {
    for (auto page = pages.rbegin(); page != pages.rend(); ++page) {
        Page& released = at(*page);
        if (--released.users > 0) continue;
        released.idle = idle_.insert(released.content == 0 ? idle_.begin() : idle_.end(), *page);
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
        Key key = key_of(so_far.content, tokens.subspan(so_far.pages * size, size));
        const auto [known, is_new] = known_.try_emplace(key, number);
        if (is_new) {
            page.key = std::move(key);
            page.content = ++last_content_;
        }  // else two computed it at once; what follows is filed behind the first
        so_far.content = at(known->second).content;
    }
}

}  // namespace hone::decoder
