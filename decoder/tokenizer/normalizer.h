// What is done to text before it is cut into words: the "normalizer" of a tokenizer.json. Const access from
// many threads is fine.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/text/normal_form.h"
#include "decoder/tokenizer/json_place.h"

namespace hone::decoder {

class Normalizer {
  public:
    /// Changes nothing.
    Normalizer() = default;
    /// Sequence, Prepend, Replace, NFC, NFD, NFKC and NFKD. Throws DecoderError for another type.
    [[nodiscard]] static Normalizer read(const JsonPlace& json);

    [[nodiscard]] static Normalizer of_form(NormalForm form);

    /// `text` is well-formed UTF-8. Throws DecoderError when it grows beyond max_grown_bytes().
    [[nodiscard]] std::string apply(std::string_view text) const;

  private:
    /// Gets the text and how long it may become.
    using Step = std::function<std::string(std::string_view, std::size_t)>;

    void add(const JsonPlace& json);
    [[nodiscard]] static Step step(const JsonPlace& json);

    std::vector<Step> steps_;
};

}  // namespace hone::decoder
