// {"token": id, ...} as a vocabulary: vocab.json, and "vocab" of tokenizer.json.
#pragma once

#include "decoder/tokenizer/json_place.h"
#include "decoder/tokenizer/vocabulary.h"

namespace hone::decoder {

/// Throws DecoderError for an id that is none or that two tokens have.
[[nodiscard]] Vocabulary read_vocabulary(const JsonPlace& json);

}  // namespace hone::decoder
