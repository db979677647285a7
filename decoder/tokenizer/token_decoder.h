// Makes text of tokens again, one token at a time: the "decoder" of a tokenizer.json. The steps are made once
// and read from many threads; each text that is decoded has a chain of states.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/tokenizer/json_place.h"

namespace hone::decoder {

/// One step at work. Tokens go in and come out, changed, joined or later.
class DecoderState {
  public:
    DecoderState() = default;
    DecoderState(const DecoderState&) = delete;
    DecoderState& operator=(const DecoderState&) = delete;
    virtual ~DecoderState() = default;
    virtual void push(std::string token, std::vector<std::string>& out) = 0;
    /// What was held back until the end of the text.
    virtual void finish(std::vector<std::string>&) {}
};

/// How a text is decoded that is not whole yet. They differ where a run of byte tokens ("<0xF0>") is no text
/// as a whole: then all of it is U+FFFD, but who streams has had its whole characters by then. As bytes each
/// token is what it adds, also a part of a character.
enum class Decoding { whole, streamed, bytes };

class TokenDecoder {
  public:
    /// Tokens with a space between, as without a "decoder".
    TokenDecoder();
    /// Sequence, ByteLevel, Replace, ByteFallback, Fuse, Strip and Metaspace. Throws DecoderError for another
    /// type, and for an order in which text could not be given out before all of it is there.
    [[nodiscard]] static TokenDecoder read(const JsonPlace& json);
    /// Each token is bytes in the byte alphabet.
    [[nodiscard]] static TokenDecoder byte_level();
    /// U+2581 for spaces and tokens for bytes, as sentencepiece has them; `strip_first`: without a space in
    /// front of the text.
    [[nodiscard]] static TokenDecoder sentencepiece(bool strip_first);

    [[nodiscard]] std::vector<std::unique_ptr<DecoderState>> start(Decoding decoding) const;

  private:
    using Step = std::function<std::unique_ptr<DecoderState>(Decoding)>;

    struct Empty {};
    explicit TokenDecoder(Empty) {}
    void add(const JsonPlace& json);
    void add_replace(const JsonPlace& json);
    void add_strip(const JsonPlace& json);
    void add_metaspace(const JsonPlace& json);
    template <class State, class... Values>
    void add_step(Values... values);
    template <class State>
    void add_decoding_step();

    std::vector<Step> steps_;
    bool fused_ = false;  ///< what follows gets pieces of one token
};

/// Tokens through a chain of states; text as soon as it is certain.
class TokenStream {
  public:
    explicit TokenStream(std::vector<std::unique_ptr<DecoderState>> states) : states_(std::move(states)) {}
    [[nodiscard]] std::string push(std::string_view token);
    [[nodiscard]] std::string finish();

  private:
    /// Through the states from the n-th on.
    [[nodiscard]] std::string pass(std::vector<std::string> tokens, std::size_t first);

    std::vector<std::unique_ptr<DecoderState>> states_;
};

}  // namespace hone::decoder
