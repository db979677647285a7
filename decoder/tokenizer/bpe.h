// Byte pair encoding: a word becomes its characters (or bytes), and neighbors are joined, the lowest rank
// first, until no merge is left. Takes n log n steps for n characters. Const access from many threads is
// fine, each with a workspace of its own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "decoder/tokenizer/merge_queue.h"
#include "decoder/tokenizer/merges.h"
#include "decoder/tokenizer/model.h"
#include "decoder/tokenizer/vocabulary.h"

namespace hone::decoder {

struct BpeOptions {
    std::optional<int> unknown{};  ///< stands for characters without a token; none: they vanish
    bool fuse_unknown = false;     ///< one token for a run of them
    bool byte_fallback = false;    ///< their bytes as "<0x41>" before that
    bool ignore_merges = false;    ///< a word that is a token is that token
    bool byte_level = false;       ///< words are bytes, the vocabulary writes them in the byte alphabet
};

/// What encode() works with, kept from word to word so that nothing is allocated.
struct BpeWorkspace {
    struct Symbol {
        int id = 0;  ///< below 0: joined to the one before
        std::uint32_t previous = 0;
        std::uint32_t next = 0;
    };
    std::vector<Symbol> symbols{};
    MergeQueue queue{};
};

class Bpe final : public Model {
  public:
    /// `pairs`: texts of two tokens each, in the order of their ranks. Throws DecoderError for a side or a
    /// result that is no token.
    Bpe(const Vocabulary& vocabulary, const std::vector<std::pair<std::string_view, std::string_view>>& pairs,
        BpeOptions options);

    /// Adds the tokens of a word: well-formed UTF-8, or any bytes at byte level.
    void encode(std::string_view word, std::vector<int>& ids, BpeWorkspace& workspace) const override;
    /// Whether no merge reaches across the beginning of a run of U+2581, so that text may be cut there.
    [[nodiscard]] bool cuts_at_marks() const { return cuts_at_marks_; }

  private:
    struct Unknown;

    [[nodiscard]] Merge merge_of(std::string_view left, std::string_view right, std::uint32_t rank) const;
    void add_characters(std::string_view word, BpeWorkspace& workspace) const;
    void add_unknown(std::string_view character, Unknown& unknown, BpeWorkspace& workspace) const;
    [[nodiscard]] bool add_bytes(std::string_view character, BpeWorkspace& workspace) const;
    [[nodiscard]] std::optional<int> whole_word(std::string_view word) const;
    void join(BpeWorkspace& workspace) const;
    void consider(std::uint32_t position, BpeWorkspace& workspace) const;

    const Vocabulary* vocabulary_;
    BpeOptions options_;
    Merges merges_;
    std::array<int, 256> bytes_{};  ///< token of each byte, or -1
    bool cuts_at_marks_ = false;
};

}  // namespace hone::decoder
