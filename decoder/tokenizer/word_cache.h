// Tokens of words that came before. Has room for so many words and no more; a new one takes the place of
// another. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

namespace hone::decoder {

class WordCache {
  public:
    /// `words` is a power of two.
    explicit WordCache(std::size_t words) : slots_(words) {}

    /// Adds the tokens of `word`: known ones, or what `encode(word, ids)` adds.
    template <class Encode>
    void encode(std::string_view word, std::vector<int>& ids, const Encode& encode) {
        if (word.size() > max_word_bytes) return encode(word, ids);
        Slot& slot = slots_[std::hash<std::string_view>{}(word) & (slots_.size() - 1)];
        if (slot.bytes == word.size() && std::memcmp(slot.word.data(), word.data(), word.size()) == 0) {
            ids.insert(ids.end(), slot.ids.begin(), slot.ids.begin() + slot.count);
            return;
        }
        const std::size_t before = ids.size();
        encode(word, ids);
        keep(word, ids.data() + before, ids.size() - before, slot);
    }

  private:
    static constexpr std::size_t max_word_bytes = 30;
    static constexpr std::size_t max_ids = 8;

    /// A line of the processor's cache, which has most words of most languages.
    struct alignas(64) Slot {
        std::uint8_t bytes = UINT8_MAX;  ///< that many: no word
        std::uint8_t count = 0;
        std::array<char, max_word_bytes> word{};
        std::array<int, max_ids> ids{};
    };

    static void keep(std::string_view word, const int* ids, std::size_t count, Slot& slot) {
        if (count > max_ids) return;
        slot.bytes = static_cast<std::uint8_t>(word.size());
        slot.count = static_cast<std::uint8_t>(count);
        std::memcpy(slot.word.data(), word.data(), word.size());
        if (count > 0) std::memcpy(slot.ids.data(), ids, count * sizeof(int));
    }

    std::vector<Slot> slots_;
};

}  // namespace hone::decoder
