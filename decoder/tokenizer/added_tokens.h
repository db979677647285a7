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
    /// Finds where texts stand in another one, in time that grows with that one alone, however long they are:
    /// a tree of their bytes from the last to the first, with the links of Aho and Corasick, goes through it
    /// from its end. Behind each byte it stands for the longest part of a text that begins there.
    class Finder {
      public:
        /// Of two that are equal the first counts.
        void add(std::string_view text, int token);
        /// Behind the last text.
        void link();
        struct Match {
            std::size_t at = 0;
            int token = -1;
        };
        /// The longest text that begins at each place where one does, the last place first.
        [[nodiscard]] std::vector<Match> find(std::string_view text) const;

      private:
        struct Node {
            std::uint32_t parent = 0;
            std::uint32_t depth = 0;
            std::uint32_t shorter = 0;  ///< the longest node that stands for a beginning of this one's bytes
            int token = -1;             ///< the longest text that begins as this node's bytes do
            char byte = 0;
        };

        [[nodiscard]] std::optional<std::uint32_t> next(std::uint32_t node, char byte) const;
        /// Of the node or, where it has no such byte, of the longest shorter one that has; the root if none.
        [[nodiscard]] std::uint32_t step(std::uint32_t node, char byte) const;

        std::unordered_map<std::uint64_t, std::uint32_t> edges_;  ///< node and byte: the next node
        std::vector<Node> nodes_{1};
        std::bitset<256> last_;  ///< bytes that texts end with
    };

    [[nodiscard]] std::vector<TextSection> split(std::string_view text, const Finder& finder,
                                                 bool parse_special) const;

    std::vector<AddedToken> tokens_;
    std::unordered_map<std::string, std::size_t> by_text_;
    std::unordered_map<int, std::size_t> by_id_;
    Finder raw_;
    Finder normalized_;
};

}  // namespace hone::decoder
