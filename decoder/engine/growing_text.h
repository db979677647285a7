// A text in the making, for who waits for it: the engine's thread puts tokens into a box and never waits, and
// next() takes them out as characters. One thread calls next(), any thread cancel().
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decoder/engine/engine.h"
#include "decoder/engine/text_output.h"

namespace hone::decoder {

/// What came of a text since it was last asked for.
struct TextPiece {
    enum class End : std::uint8_t { none, end_id, length, stop, cancelled };
    std::string text{};
    std::vector<int> ids{};  ///< the one that ended the text included
    End end = End::none;
    std::vector<TokenChances> chances{};  ///< of each of these, where the request asks for them
    /// With the first of them: of the prompt's tokens but the first, where the request asks for them.
    std::optional<std::vector<TokenChances>> of_prompt{};
};

class GrowingText {
  public:
    /// Submits the request. Throws what TokenEngine::submit() does. The engine must outlive it.
    GrowingText(TokenEngine& engine, const Tokenizer& tokenizer, TextRequest request,
                std::vector<std::string> stops);
    GrowingText(const GrowingText&) = delete;
    GrowingText& operator=(const GrowingText&) = delete;
    /// Cancels what has not ended: its pages are free again.
    ~GrowingText();

    /// Waits for tokens, for so long at the most. Throws EngineFailure when none follows because the GPU
    /// failed; after any exception the text is cancelled.
    [[nodiscard]] TextPiece next(std::chrono::milliseconds wait);
    /// Wakes who waits in next().
    void cancel();

  private:
    struct Box;
    [[nodiscard]] TextPiece piece_of(const std::vector<NewToken>& news, std::vector<TokenChances> chances);

    TokenEngine& engine_;
    std::shared_ptr<Box> box_;  ///< a token may still come in while the request is cancelled
    TextOutput output_;
    TextPiece::End end_ = TextPiece::End::none;
    RequestId id_ = 0;
};

}  // namespace hone::decoder
