// A conversation as the text that a model continues.
#pragma once

#include <string>

#include "decoder/chat/chat_format.h"
#include "decoder/chat/conversation.h"

namespace hone::decoder {

struct ChatWords {
    std::string bos{};
    std::string eos{};
    std::string today{};  ///< "05 Jan 2026"
};

/// Up to where the assistant speaks; bytes that are no characters become U+FFFD. Variables that the format
/// does not read change nothing. Throws DecoderError for an order of roles that the format refuses.
[[nodiscard]] std::string chat_text(const ChatFormat& format, const Conversation& conversation,
                                    const ChatWords& words, const ChatVariables& variables = {});

}  // namespace hone::decoder
