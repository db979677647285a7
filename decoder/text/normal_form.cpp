#include "decoder/text/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "decoder/text/utf8.h"

namespace hone::decoder {
namespace {

bool composes(NormalForm form) { return form == NormalForm::nfc || form == NormalForm::nfkc; }
bool is_compatible(NormalForm form) { return form == NormalForm::nfkc || form == NormalForm::nfkd; }

utf8proc_propval_t combining_class(utf8proc_int32_t code_point) {
    return utf8proc_get_property(code_point)->combining_class;
}

std::vector<utf8proc_int32_t> decomposed(std::string_view text, utf8proc_option_t options) {
    std::vector<utf8proc_int32_t> out;
    std::array<utf8proc_int32_t, 32> parts{};  // the longest decomposition of one character has 18
    for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(first_length(rest))) {
        const auto code_point = static_cast<utf8proc_int32_t>(first_code_point(rest));
        const utf8proc_ssize_t count =
            utf8proc_decompose_char(code_point, parts.data(), parts.size(), options, nullptr);
        out.insert(out.end(), parts.begin(),
                   parts.begin() + std::clamp<utf8proc_ssize_t>(count, 0, parts.size()));
    }
    return out;
}

/// Marks between two starters stand in the order of their classes. utf8proc's own sort is quadratic in their
/// number.
void order_marks(std::vector<utf8proc_int32_t>& text) {
    const auto is_starter = [](utf8proc_int32_t code_point) { return combining_class(code_point) == 0; };
    for (auto begin = text.begin(); begin != text.end();) {
        begin = std::find_if_not(begin, text.end(), is_starter);
        const auto end = std::find_if(begin, text.end(), is_starter);
        std::ranges::stable_sort(begin, end, {}, combining_class);
        begin = end;
    }
}

}  // namespace

std::string normalized(std::string_view text, NormalForm form) {
    if (is_ascii(text)) return std::string(text);
    const int compatible = is_compatible(form) ? UTF8PROC_COMPAT : 0;
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | compatible);
    std::vector<utf8proc_int32_t> code_points = decomposed(text, options);
    order_marks(code_points);
    if (composes(form)) {
        const auto composing = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
        const auto length = static_cast<utf8proc_ssize_t>(code_points.size());
        const utf8proc_ssize_t left = utf8proc_normalize_utf32(code_points.data(), length, composing);
        code_points.resize(static_cast<std::size_t>(std::clamp<utf8proc_ssize_t>(left, 0, length)));
    }
    std::string out;
    for (const utf8proc_int32_t code_point : code_points)
        append_code_point(out, static_cast<char32_t>(code_point));
    return out;
}

}  // namespace hone::decoder
