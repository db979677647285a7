// Tokens that stand beside the model's: control tokens such as <|im_end|>, and words that were added later.
// They are found in the text before anything else: of those that begin at the leftmost place, the longest.
// Const access from many threads is fine.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "decoder/tokenizer/json_place.h"
#include "decoder/tokenizer/normalizer.h"

namespace hone::decoder {

struct AddedToken {
    std::string text{};
    int id = 0;
    bool special = false;      ///< control: decoding can leave it out, encoding can take it for plain text
    bool single_word = false;  ///< found only where no letter or digit stands beside it
    bool lstrip = false;       ///< takes the white space before it
    bool rstrip = false;       ///< takes the white space behind it
    bool normalized = false;   ///< found in the normalized text
    std::string found{};       ///< the text that is looked for and decoded; set by AddedTokens

    /// {"content": ..., "special": ...} without its id.
    [[nodiscard]] static AddedToken read(const JsonPlace& json, int id);
};

/// A part of a text: an added token, or what lies between (id below 0).
struct TextSection {
    std::string_view text;
    int id = -1;
};

class AddedTokens {
  public:
    AddedTokens() = default;
    /// Of two with the same text the first counts.
    AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer);

    /// Sections in order, at the tokens that are looked for in the raw text, or in the normalized one.
    [[nodiscard]] std::vector<TextSection> split_raw(std::string_view text, bool parse_special) const;
    [[nodiscard]] std::vector<TextSection> split_normalized(std::string_view text, bool parse_special) const;

    [[nodiscard]] const AddedToken* find(std::string_view text) const;
    [[nodiscard]] const AddedToken* find(int id) const;
    [[nodiscard]] const std::vector<AddedToken>& all() const { return tokens_; }

  private:
    /// Texts by their bytes.
    class Trie {
      public:
        Trie() : ends_(1, -1) {}
        void add(std::string_view text, int token);
        struct Match {
            std::size_t length = 0;
            int token = -1;
        };
        /// The longest text that stands at `at`.
        [[nodiscard]] Match longest(std::string_view text, std::size_t at) const;
        [[nodiscard]] bool begins_with(char byte) const { return first_[static_cast<unsigned char>(byte)]; }
        [[nodiscard]] bool empty() const { return first_.none(); }

      private:
        std::unordered_map<std::uint64_t, std::uint32_t> edges_;  ///< node and byte: the next node
        std::vector<int> ends_;                                   ///< by node: its token or -1
        std::bitset<256> first_;
    };

    [[nodiscard]] std::vector<TextSection> split(std::string_view text, const Trie& trie,
                                                 bool parse_special) const;

    std::vector<AddedToken> tokens_;
    std::unordered_map<std::string, std::size_t> by_text_;
    std::unordered_map<int, std::size_t> by_id_;
    Trie raw_;
    Trie normalized_;
};

}  // namespace hone::decoder
