#include "decoder/text/characters.h"

#include <string>
#include <vector>

#include "decoder/text/regex.h"
#include "decoder/text/utf8.h"

namespace hone::decoder {

bool is_white_space(char32_t code_point) {
    if (code_point < 0x80) return code_point == ' ' || (code_point >= '\t' && code_point <= '\r');
    return code_point == 0x85 || code_point == 0xA0 || code_point == 0x1680 ||
           (code_point >= 0x2000 && code_point <= 0x200A) || code_point == 0x2028 || code_point == 0x2029 ||
           code_point == 0x202F || code_point == 0x205F || code_point == 0x3000;
}

bool is_word_character(char32_t code_point) {
    static const Regex word(R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}])");
    std::string character;
    append_code_point(character, code_point);
    std::vector<Span> matches;
    word.find_all(character, matches);
    return !matches.empty();
}

}  // namespace hone::decoder
