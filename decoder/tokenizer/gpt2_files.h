// vocab.json and merges.txt, the files of GPT-2 and of those that followed it before there was
// tokenizer.json.
#pragma once

#include <filesystem>

#include "decoder/tokenizer/parts.h"
#include "decoder/tokenizer/special_tokens.h"

namespace hone::decoder {

/// Text is cut as `special.tokenizer_class` does it: GPT2Tokenizer, Qwen2Tokenizer or none said. Throws
/// DecoderError for another one, or the InputError of who reads the files.
[[nodiscard]] TokenizerParts read_gpt2_files(const std::filesystem::path& folder,
                                             const SpecialTokens& special);

}  // namespace hone::decoder
