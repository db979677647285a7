// tokenizer.model, a file of sentencepiece (BPE or unigrams), through its library.
#pragma once

#include <filesystem>

#include "decoder/tokenizer/parts.h"
#include "decoder/tokenizer/special_tokens.h"

namespace hone::decoder {

/// Each text between added tokens is one for the library, with the space in front that its model may want.
/// BOS stands before the text unless `special` says otherwise. Throws DecoderError, or the InputError of who
/// reads the file.
[[nodiscard]] TokenizerParts read_sentencepiece(const std::filesystem::path& file,
                                                const SpecialTokens& special);

}  // namespace hone::decoder
