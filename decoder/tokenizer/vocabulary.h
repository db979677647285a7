// Tokens of a model and their ids, both ways. Made once, read from many threads.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hone::decoder {

/// Ids lie below; the largest vocabularies in use have 262,144 tokens.
inline constexpr int max_vocabulary = 1 << 22;

class Vocabulary {
  public:
    /// The text must be new. Throws DecoderError for an id outside of 0..max_vocabulary - 1 and for one that
    /// another token has.
    void add(std::string text, int id);

    [[nodiscard]] std::optional<int> find(std::string_view text) const;
    /// None for ids that no token has.
    [[nodiscard]] std::optional<std::string_view> text_of(int id) const;
    /// Tokens, not ids: there may be gaps.
    [[nodiscard]] std::size_t size() const { return ids_.size(); }
    /// One above the largest id.
    [[nodiscard]] int end_id() const { return static_cast<int>(texts_.size()); }

  private:
    std::deque<std::string> owned_;  ///< texts do not move
    std::unordered_map<std::string_view, int> ids_;
    std::vector<const std::string*> texts_;  ///< by id
};

}  // namespace hone::decoder
