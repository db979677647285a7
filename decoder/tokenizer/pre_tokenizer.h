// Cuts normalized text into words, across whose ends a model joins nothing: the "pre_tokenizer" of a
// tokenizer.json. Const access from many threads is fine.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/tokenizer/json_place.h"

namespace hone::decoder {

struct Piece {
    std::string_view text;
    bool first = false;  ///< the text that encode() got begins with it
};

/// The pieces of a text at work. Views look into the text that was given, or into `made`.
struct Pieces {
    std::vector<Piece> list{};
    std::deque<std::string> made{};
};

class PreTokenizerStep {
  public:
    PreTokenizerStep() = default;
    PreTokenizerStep(const PreTokenizerStep&) = delete;
    PreTokenizerStep& operator=(const PreTokenizerStep&) = delete;
    virtual ~PreTokenizerStep() = default;
    virtual void apply(Pieces& pieces) const = 0;
};

class PreTokenizer {
  public:
    /// One word, the whole text.
    PreTokenizer() = default;
    /// Sequence, ByteLevel, Split, Digits and Metaspace. Throws DecoderError for another type, and for a
    /// ByteLevel that is not the last one.
    [[nodiscard]] static PreTokenizer read(const JsonPlace& json);
    /// As GPT-2 does it: cut by `regex`, words are bytes.
    [[nodiscard]] static PreTokenizer byte_level(std::string_view regex, bool add_prefix_space);

    /// Cuts before each run of U+2581, too, which a model may allow (Bpe::cuts_at_marks).
    void cut_at_marks();
    /// Whether words are bytes, which the vocabulary writes in the byte alphabet.
    [[nodiscard]] bool is_byte_level() const { return byte_level_; }

    /// No piece that is left is empty.
    void apply(Pieces& pieces) const;

  private:
    void add(const JsonPlace& json);
    void add_byte_level(const JsonPlace& json);

    std::vector<std::shared_ptr<const PreTokenizerStep>> steps_;
    bool byte_level_ = false;
};

/// How GPT-2 cuts text, and who followed it.
[[nodiscard]] std::string_view gpt2_regex();

}  // namespace hone::decoder
