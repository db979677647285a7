#include "decoder/chat/chat_template.h"

#include "decoder/error.h"

namespace hone::decoder {

ChatTemplate ChatTemplate::load(const std::filesystem::path& folder, const Tokenizer&) {
    throw DecoderError(folder.string() + " has no chat template");
}

std::string ChatTemplate::render(const Conversation&) const { return {}; }

}  // namespace hone::decoder
