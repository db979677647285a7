// What a file of sentencepiece (protocol buffers, "ModelProto") says about itself, read before
// libsentencepiece gets it: how it treats spaces, and whether it rewrites characters. Models that do are
// refused: the tables for that are not checked by the library, and no model of today's families has them. So
// are pieces that the library does not survive: longer than 4096 bytes, with a zero byte, and more than 64
// user-defined ones of which each begins with the one before.
#pragma once

#include <string>
#include <string_view>

namespace hone::decoder {

struct SentencepieceOutline {
    bool add_dummy_prefix = true;  ///< a space in front of the text
};

/// Throws DecoderError for what is no such file, or one that is refused.
[[nodiscard]] SentencepieceOutline sentencepiece_outline(std::string_view bytes,
                                                         const std::string& file_name);

}  // namespace hone::decoder
