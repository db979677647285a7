#include "decoder/tokenizer/pattern.h"

#include <fmt/format.h>

#include <algorithm>

#include "decoder/error.h"
#include "decoder/text/utf8.h"
#include "runtime/system/short_text.h"

namespace hone::decoder {
namespace {

template <class Take>
void find_text(std::string_view text, std::string_view wanted, const Take& take) {
    for (std::size_t at = text.find(wanted); at != std::string_view::npos;
         at = text.find(wanted, at + wanted.size()))
        take(Span{at, at + wanted.size()});
}

}  // namespace

Pattern Pattern::read(const JsonPlace& json) {
    if (const auto text = json.find("String")) {
        if (text->text().empty()) text->refuse("a text to look for cannot be empty");
        return of_text(text->text());
    }
    const auto regex = json.find("Regex");
    if (!regex) json.refuse("a pattern is {\"String\": ...} or {\"Regex\": ...}");
    try {
        return of_regex(regex->text());
    } catch (const DecoderError& error) {
        throw DecoderError(runtime::with_short_words(fmt::format("{}: {}", json.place(), error.what())));
    }
}

void Pattern::find_all(std::string_view text, std::vector<Span>& matches) const {
    if (const Regex* const regex = std::get_if<Regex>(&pattern_)) return regex->find_all(text, matches);
    matches.clear();
    find_text(text, std::get<std::string>(pattern_), [&](const Span& match) { matches.push_back(match); });
}

std::string Pattern::replaced(std::string_view text, std::string_view content, std::size_t max_bytes) const {
    std::string out;
    std::size_t copied = 0;
    const auto replace = [&](const Span& match) {
        require_room(out.size() + content.size(), max_bytes);
        out.append(text.substr(copied, match.begin - copied)).append(content);
        copied = match.end;
    };
    if (const std::string* const wanted = std::get_if<std::string>(&pattern_)) {
        find_text(text, *wanted, replace);  // as often as every byte, which nobody needs a list of
    } else {
        std::vector<Span> matches;
        find_all(text, matches);
        std::ranges::for_each(matches, replace);
    }
    return out.append(text.substr(copied));
}

void require_room(std::size_t bytes, std::size_t most) {
    if (bytes > most)
        throw DecoderError(fmt::format("text grows above {} bytes by what is put into it", most));
}

std::size_t max_grown_bytes(std::size_t bytes) { return std::max(std::size_t{16} << 20, 16 * bytes); }

bool Pattern::is_one_character() const {
    const std::string* const text = std::get_if<std::string>(&pattern_);
    return text != nullptr && first_length(*text) == text->size();
}

}  // namespace hone::decoder
