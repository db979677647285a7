// Conversations to the text that a model continues, as the chat template in its folder has them. Who serves a
// model calls it. Const access from many threads is fine.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "decoder/chat/conversation.h"
#include "decoder/jinja/template.h"
#include "decoder/tokenizer/tokenizer.h"

namespace hone::decoder {

/// Names that a template finds whatever a request says: no variable of a request is called so.
[[nodiscard]] bool is_own_variable(std::string_view name);

class ChatTemplate {
  public:
    /// From chat_template.jinja, else tokenizer_config.json. Throws DecoderError, or another
    /// runtime::InputError, when there is none and when it cannot be read.
    [[nodiscard]] static ChatTemplate load(const std::filesystem::path& folder, const Tokenizer& tokenizer);

    /// The same, and nothing where load() throws an InputError, with its words in `why_none`.
    [[nodiscard]] static std::optional<ChatTemplate> find(const std::filesystem::path& folder,
                                                          const Tokenizer& tokenizer, std::string& why_none);

    /// With BOS where the template writes it: encode it without special tokens of its own. A special token in
    /// a message counts as such, as in transformers; bytes that are no characters become U+FFFD. Throws
    /// DecoderError for a conversation that the template refuses, with its words, and for a template that
    /// fails, with the file and the line.
    [[nodiscard]] std::string render(const Conversation& conversation,
                                     const ChatVariables& variables = {}) const;
    /// Whether its statements have this name: what they do not have cannot change a text.
    [[nodiscard]] bool mentions(std::string_view name) const { return template_.mentions(name); }
    /// What ends the assistant's turn, where that is not the end of all text.
    [[nodiscard]] std::optional<int> turn_end() const { return turn_end_; }

  private:
    ChatTemplate(std::string place, jinja::Template read, nlohmann::ordered_json words);

    std::string place_;  ///< how messages begin
    jinja::Template template_;
    nlohmann::ordered_json words_;  ///< variables that all conversations have: names of special tokens
    std::optional<int> turn_end_{};
};

}  // namespace hone::decoder
