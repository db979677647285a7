// Patterns of Oniguruma, which Hugging Face's tokenizers use, in PCRE2's syntax. What both write alike but
// understand differently is translated: `\s` (PCRE2 has U+180E in it), `\v`, `\d`, `\u0041`, `\p{Han}` (for
// PCRE2 all characters that are used with the script). What cannot be translated simply is refused: `\w` and
// `\b`, `\h`, `{n,m}+` (for Oniguruma a repetition of the repetition), sets in sets, named groups and
// references to groups, options but for `i`.
#pragma once

#include <string>
#include <string_view>

namespace hone::decoder {

/// Throws DecoderError with the pattern and what in it is not understood. What is no pattern for either is
/// left to PCRE2.
[[nodiscard]] std::string pcre2_syntax(std::string_view pattern);

}  // namespace hone::decoder
