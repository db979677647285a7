// A conversation in the terminal: a line of the user, the answer as it grows, and so on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "decoder/chat/chat_template.h"
#include "decoder/engine/engine.h"

namespace hone::cli {

struct ChatOptions {
    decoder::TextRequest answer{};  ///< of each answer: everything but the prompt
    std::vector<std::string> stops{};
    std::string system{};  ///< the conversation's first message; "": none
    decoder::ChatVariables variables{};
};

class Chat {
  public:
    /// What is given must outlive it.
    Chat(decoder::TokenEngine& engine, const decoder::Tokenizer& tokenizer, const decoder::ChatTemplate& chat,
         const ChatOptions& options);

    /// Reads lines of stdin until its end, "/exit", or `stop`, which cuts the answer under way. A line that
    /// cannot be answered is refused on stderr and forgotten; it also ends where the reader of stdout has
    /// gone. Throws Failure where stdin cannot be read or stdout not written. Returns how many were answered.
    [[nodiscard]] std::int64_t run(const std::atomic<bool>& stop, bool has_prompt);

  private:
    [[nodiscard]] bool answer(std::string line, const std::atomic<bool>& stop);
    [[nodiscard]] decoder::TextRequest request() const;

    decoder::TokenEngine& engine_;
    const decoder::Tokenizer& tokenizer_;
    const decoder::ChatTemplate& template_;
    const ChatOptions& options_;
    decoder::Conversation conversation_;
};

}  // namespace hone::cli
