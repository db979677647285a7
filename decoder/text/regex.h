// Regular expressions of tokenizers, by PCRE2. They are written for Oniguruma; regex_syntax.h says what
// differs. A pattern from outside can be slow for a while but not for ever: a match has a limit of steps and
// memory. Const access from many threads is fine.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hone::decoder {

struct Span {
    std::size_t begin = 0;
    std::size_t end = 0;
    friend bool operator==(const Span&, const Span&) = default;
};

class Regex {
  public:
    /// Throws DecoderError with the pattern and what in it is not understood.
    explicit Regex(std::string_view pattern);

    /// All matches from left to right, in place of what `matches` had. `text` is well-formed UTF-8. An empty
    /// match right behind another one does not count. Throws DecoderError when one takes more than its limit.
    void find_all(std::string_view text, std::vector<Span>& matches) const;

  private:
    struct Code;
    std::string pattern_;
    std::shared_ptr<const Code> code_;
};

}  // namespace hone::decoder
