// The token behind an answer, by what a chat template writes there.
#pragma once

#include <optional>

#include "decoder/tokenizer/tokenizer.h"

namespace hone::decoder {

class ChatTemplate;

/// The first special token between an answer and the question that follows it, in a conversation that is
/// made up; none where there is no such token, where it ends all texts, and where the template refuses it.
[[nodiscard]] std::optional<int> find_turn_end(const ChatTemplate& chat, const Tokenizer& tokenizer);

}  // namespace hone::decoder
