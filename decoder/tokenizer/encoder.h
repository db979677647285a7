// One text on its way to tokens: sections at added tokens, normalized, cut into words, and these encoded. One
// thread.
#pragma once

#include <string_view>
#include <vector>

#include "decoder/tokenizer/bpe.h"
#include "decoder/tokenizer/parts.h"
#include "decoder/tokenizer/word_cache.h"

namespace hone::decoder {

class Encoder {
  public:
    /// All of them outlive it.
    Encoder(const TokenizerParts& parts, WordCache& cache) : parts_(parts), cache_(cache) {}

    /// The tokens of well-formed UTF-8, without those that the post-processor adds.
    [[nodiscard]] std::vector<int> encode(std::string_view text, bool parse_special);

  private:
    void encode_raw(std::string_view section, bool first, bool parse_special);
    void encode_normalized(std::string_view section, bool first);

    const TokenizerParts& parts_;
    WordCache& cache_;
    BpeWorkspace workspace_{};
    std::vector<int> ids_{};
};

}  // namespace hone::decoder
