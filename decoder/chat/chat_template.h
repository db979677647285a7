// Conversations to the text that a model continues, as the template in its folder has them. Templates are
// programs in Jinja; those of well-known families are known by what tells them apart, and done in C++.
// Another one is refused: nothing is guessed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "decoder/chat/conversation.h"
#include "decoder/tokenizer/tokenizer.h"

namespace hone::decoder {

enum class ChatFamily : std::uint8_t { llama3, chatml, mistral, gemma, phi3 };

class ChatTemplate {
  public:
    /// From chat_template.jinja, else tokenizer_config.json. Throws DecoderError when there is none, when it
    /// is not a known one, and when the tokenizer lacks a token that it needs.
    [[nodiscard]] static ChatTemplate load(const std::filesystem::path& folder, const Tokenizer& tokenizer);

    [[nodiscard]] ChatFamily family() const { return family_; }
    /// The text up to where the assistant speaks, BOS included: encode it without special tokens of its own.
    /// Throws DecoderError for an order of roles that the template refuses.
    [[nodiscard]] std::string render(const Conversation& conversation) const;

  private:
    ChatFamily family_{};
    std::string bos_{};
    std::string default_system_{};
};

}  // namespace hone::decoder
