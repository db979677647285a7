// What a tokenizer is made of, whatever file says it. Made once, read from many threads.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "decoder/tokenizer/added_tokens.h"
#include "decoder/tokenizer/model.h"
#include "decoder/tokenizer/normalizer.h"
#include "decoder/tokenizer/post_processor.h"
#include "decoder/tokenizer/pre_tokenizer.h"
#include "decoder/tokenizer/token_decoder.h"
#include "decoder/tokenizer/vocabulary.h"

namespace hone::decoder {

struct TokenizerParts {
    std::unique_ptr<const Vocabulary> vocabulary{};  ///< the model looks into it
    std::unique_ptr<const Model> model{};
    AddedTokens added{};
    Normalizer normalizer{};
    PreTokenizer pre_tokenizer{};
    PostProcessor post_processor{};
    TokenDecoder decoder{};
};

}  // namespace hone::decoder
