// What makes tokens of a word.
#pragma once

#include <string_view>
#include <vector>

namespace hone::decoder {

struct BpeWorkspace;

class Model {
  public:
    Model() = default;
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;
    virtual ~Model() = default;

    /// Adds the tokens of a word: well-formed UTF-8, or any bytes where the pre-tokenizer is at byte level.
    virtual void encode(std::string_view word, std::vector<int>& ids, BpeWorkspace& workspace) const = 0;
};

}  // namespace hone::decoder
