// Text to tokens and back, as the model in a Hugging Face folder has them. Who runs a model calls it. Does
// not know how a conversation becomes one text (chat templates). Copies share what was loaded; const access
// from many threads is fine.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/tokenizer/token_decoder.h"

namespace hone::decoder {

struct EncodeOptions {
    bool add_special_tokens = true;    ///< BOS and what else the model wants around a text
    bool parse_special_tokens = true;  ///< "<|im_end|>" in the text is that token; else it is plain text
};

struct DecodeOptions {
    bool skip_special_tokens = true;
};

/// Bytes of a text that is encoded at the most: positions have 32 bits.
inline constexpr std::size_t max_text_bytes = std::size_t{1} << 28;

class TextStream;

class Tokenizer {
  public:
    /// From tokenizer.json, else vocab.json with merges.txt, else tokenizer.model. Throws DecoderError, or
    /// another runtime::InputError, that names the file and what in it is not understood.
    [[nodiscard]] static Tokenizer load(const std::filesystem::path& folder);
    /// For a model without a folder, whose speed is measured: a text's tokens are its bytes, and those from
    /// 256 on are words. From 256 tokens to max_vocabulary.
    [[nodiscard]] static Tokenizer made_up(int tokens);

    /// Bytes that are no UTF-8 count as U+FFFD. Throws DecoderError for a text above max_text_bytes and for a
    /// regular expression that gives up.
    [[nodiscard]] std::vector<int> encode(std::string_view text, EncodeOptions options = {}) const;
    /// Ids that no token has are left out: models may have more rows than tokens. Well-formed UTF-8, with
    /// U+FFFD for bytes that are no text.
    [[nodiscard]] std::string decode(std::span<const int> ids, DecodeOptions options = {}) const;
    /// The same, token by token.
    [[nodiscard]] TextStream stream(DecodeOptions options = {}) const;

    [[nodiscard]] std::optional<int> id_of(std::string_view token) const;
    /// As the file spells it: "Ġthe", "▁the", "<|im_end|>".
    [[nodiscard]] std::optional<std::string_view> token_of(int id) const;
    /// What it adds to a text that has begun: perhaps a part of a character; a special token spelt out.
    [[nodiscard]] std::string bytes_of(int id) const;
    [[nodiscard]] bool is_special(int id) const;
    /// One above the largest id.
    [[nodiscard]] int end_id() const;
    [[nodiscard]] std::optional<int> bos_id() const;
    /// All tokens that end a text. Empty when the folder names none.
    [[nodiscard]] const std::vector<int>& eos_ids() const;

  private:
    struct State;
    friend class TextStream;
    explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}

    std::shared_ptr<const State> state_;
};

/// The text of tokens that come one by one. A character is given out with the token that completes it.
class TextStream {
  public:
    [[nodiscard]] std::string push(int id);
    /// The rest, once the last token is there. Nothing may follow.
    [[nodiscard]] std::string finish();

  private:
    friend class Tokenizer;
    TextStream(Tokenizer tokenizer, DecodeOptions options, Decoding decoding);

    Tokenizer tokenizer_;
    DecodeOptions options_;
    TokenStream tokens_;
};

}  // namespace hone::decoder
