#include "decoder/tokenizer/merges.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace hone::decoder {
namespace {

void drop_repeated(std::vector<Merge>& merges) {
    const auto same_pair = [](const Merge& a, const Merge& b) {
        return a.left == b.left && a.right == b.right;
    };
    merges.erase(std::unique(merges.begin(), merges.end(), same_pair), merges.end());
}

}  // namespace

Merges::Merges(std::vector<Merge> merges, int end_id) : merges_(std::move(merges)) {
    std::ranges::sort(merges_, [](const Merge& a, const Merge& b) {
        return std::tuple(a.left, a.right, b.rank) <
               std::tuple(b.left, b.right, a.rank);  // the last rank first
    });
    drop_repeated(merges_);
    starts_.assign(static_cast<std::size_t>(end_id) + 1, 0);
    for (const Merge& merge : merges_) ++starts_[static_cast<std::size_t>(merge.left) + 1];
    for (std::size_t left = 1; left < starts_.size(); ++left) starts_[left] += starts_[left - 1];
}

const Merge* Merges::find(int left, int right) const {
    const auto index = static_cast<std::size_t>(left);
    if (left < 0 || index + 1 >= starts_.size()) return nullptr;
    const Merge* const begin = merges_.data() + starts_[index];
    const Merge* const end = merges_.data() + starts_[index + 1];
    const Merge* const found = std::ranges::lower_bound(begin, end, right, {}, &Merge::right);
    return found != end && found->right == right ? found : nullptr;
}

}  // namespace hone::decoder
