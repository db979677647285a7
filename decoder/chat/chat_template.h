// Conversations to the text that a model continues, as the chat template in its folder has them. Who serves a
// model calls it. Const access from many threads is fine.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "decoder/chat/chat_text.h"
#include "decoder/tokenizer/tokenizer.h"

namespace hone::decoder {

class ChatTemplate {
  public:
    /// From chat_template.jinja, else tokenizer_config.json. Throws DecoderError, or another
    /// runtime::InputError, when there is none, when it is not a known one, and when the tokenizer lacks a
    /// token that it needs.
    [[nodiscard]] static ChatTemplate load(const std::filesystem::path& folder, const Tokenizer& tokenizer);

    /// The same, and nothing where load() throws an InputError, with its words in `why_none`.
    [[nodiscard]] static std::optional<ChatTemplate> find(const std::filesystem::path& folder,
                                                          const Tokenizer& tokenizer, std::string& why_none);

    [[nodiscard]] const ChatFormat& format() const { return format_; }
    /// With BOS: encode it without special tokens of its own. A special token in a message counts as such, as
    /// in transformers. Throws DecoderError for an order of roles that the template refuses.
    [[nodiscard]] std::string render(const Conversation& conversation,
                                     const ChatVariables& variables = {}) const;
    /// Whether its statements have this word: what they do not have cannot change a text.
    [[nodiscard]] bool mentions(std::string_view word) const;
    /// What ends the assistant's turn, where that is not the end of all text.
    [[nodiscard]] std::optional<int> turn_end() const { return turn_end_; }

  private:
    ChatFormat format_{};
    std::string code_{};
    ChatWords words_{};
    std::optional<int> turn_end_{};
};

}  // namespace hone::decoder
