// tokenizer.json, the format of Hugging Face's tokenizers, with a BPE model. What is not understood is
// refused by name. "truncation" and "padding" are left to who batches.
#pragma once

#include <filesystem>

#include "decoder/tokenizer/parts.h"
#include "decoder/tokenizer/special_tokens.h"

namespace hone::decoder {

/// Throws DecoderError, or the InputError of who reads the file.
[[nodiscard]] TokenizerParts read_tokenizer_json(const std::filesystem::path& file,
                                                 const SpecialTokens& special);
/// So many tokens: the bytes, and words that no text is cut into, " t256" and so on.
[[nodiscard]] TokenizerParts made_up_tokenizer(int tokens);

}  // namespace hone::decoder
