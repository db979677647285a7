// Tokens that stand before and behind those of a text, such as BOS: the "post_processor" of a tokenizer.json.
#pragma once

#include <vector>

#include "decoder/tokenizer/json_place.h"

namespace hone::decoder {

struct PostProcessor {
    std::vector<int> before{};
    std::vector<int> behind{};

    /// Sequence, ByteLevel (which adds nothing) and TemplateProcessing (whose template for one text is read).
    /// Throws DecoderError for another type.
    [[nodiscard]] static PostProcessor read(const JsonPlace& json);
};

}  // namespace hone::decoder
