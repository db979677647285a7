#include "decoder/tokenizer/vocabulary.h"

#include <fmt/format.h>

#include <utility>

#include "decoder/error.h"

namespace hone::decoder {

void Vocabulary::add(std::string text, int id) {
    if (id < 0 || id >= max_vocabulary)
        throw DecoderError(fmt::format("token '{}' has id {}; ids are 0..{}", text, id, max_vocabulary - 1));
    const auto index = static_cast<std::size_t>(id);
    if (index >= texts_.size()) texts_.resize(index + 1);
    if (texts_[index] != nullptr)
        throw DecoderError(fmt::format("tokens '{}' and '{}' both have id {}", *texts_[index], text, id));
    owned_.push_back(std::move(text));
    texts_[index] = &owned_.back();
    ids_.emplace(owned_.back(), id);
}

std::optional<int> Vocabulary::find(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string_view> Vocabulary::text_of(int id) const {
    if (id < 0 || id >= end_id() || texts_[static_cast<std::size_t>(id)] == nullptr) return std::nullopt;
    return *texts_[static_cast<std::size_t>(id)];
}

}  // namespace hone::decoder
