#include "decoder/tokenizer/added_tokens.h"

#include <algorithm>

#include "decoder/text/characters.h"
#include "decoder/text/utf8.h"
#include "decoder/tokenizer/pattern.h"

namespace hone::decoder {
namespace {

/// Where the last character of well-formed text begins.
std::size_t last_begin(std::string_view text) {
    std::size_t at = text.size() - 1;
    while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    return at;
}

/// The text without the white space at its end.
std::size_t stripped_end(std::string_view text) {
    while (!text.empty()) {
        const std::size_t begin = last_begin(text);
        if (!is_white_space(first_code_point(text.substr(begin)))) break;
        text = text.substr(0, begin);
    }
    return text.size();
}

std::size_t leading_white_space(std::string_view text) {
    std::size_t length = 0;
    while (length < text.size() && is_white_space(first_code_point(text.substr(length))))
        length += first_length(text.substr(length));
    return length;
}

bool stands_alone(std::string_view before, std::string_view behind) {
    if (!before.empty() && is_word_character(first_code_point(before.substr(last_begin(before)))))
        return false;
    return behind.empty() || !is_word_character(first_code_point(behind));
}

}  // namespace

AddedToken AddedToken::read(const JsonPlace& json, int id) {
    const bool special = json.boolean_or("special", false);
    return {.text = json.at("content").text(),
            .id = id,
            .special = special,
            .single_word = json.boolean_or("single_word", false),
            .lstrip = json.boolean_or("lstrip", false),
            .rstrip = json.boolean_or("rstrip", false),
            .normalized = json.boolean_or("normalized", !special)};
}

void AddedTokens::Trie::add(std::string_view text, int token) {
    if (text.empty()) return;
    std::uint32_t node = 0;
    for (const char byte : text) {
        const std::uint64_t edge = std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
        const auto [place, added] = edges_.try_emplace(edge, static_cast<std::uint32_t>(ends_.size()));
        if (added) ends_.push_back(-1);
        node = place->second;
    }
    if (ends_[node] < 0) ends_[node] = token;
    first_.set(static_cast<unsigned char>(text[0]));
}

AddedTokens::Trie::Match AddedTokens::Trie::longest(std::string_view text, std::size_t at) const {
    Match match;
    std::uint32_t node = 0;
    for (std::size_t end = at; end < text.size(); ++end) {
        const auto next = edges_.find(std::uint64_t{node} << 8 | static_cast<unsigned char>(text[end]));
        if (next == edges_.end()) break;
        node = next->second;
        if (ends_[node] >= 0) match = {end + 1 - at, ends_[node]};
    }
    return match;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer) {
    std::size_t given_bytes = 0;
    std::size_t found_bytes = 0;
    for (AddedToken& token : tokens) {
        if (token.text.empty() || by_text_.contains(token.text)) continue;
        const std::size_t index = tokens_.size();
        by_text_.emplace(token.text, index);
        by_id_.emplace(token.id, index);
        token.found = token.normalized ? normalizer.apply(token.text) : token.text;
        given_bytes += token.text.size();
        found_bytes += token.found.size();
        require_room(found_bytes, max_grown_bytes(given_bytes));
        tokens_.push_back(std::move(token));
    }
    // Control tokens go first: of two with the same normalized text the first counts.
    for (const bool special : {true, false}) {
        for (std::size_t index = 0; index < tokens_.size(); ++index) {
            const AddedToken& token = tokens_[index];
            if (token.special != special) continue;
            (token.normalized ? normalized_ : raw_).add(token.found, static_cast<int>(index));
        }
    }
}

const AddedToken* AddedTokens::find(std::string_view text) const {
    const auto found = by_text_.find(std::string(text));
    return found == by_text_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::find(int id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

std::vector<TextSection> AddedTokens::split_raw(std::string_view text, bool parse_special) const {
    return split(text, raw_, parse_special);
}

std::vector<TextSection> AddedTokens::split_normalized(std::string_view text, bool parse_special) const {
    return split(text, normalized_, parse_special);
}

std::vector<TextSection> AddedTokens::split(std::string_view text, const Trie& trie,
                                            bool parse_special) const {
    std::vector<TextSection> out;
    std::size_t done = 0;
    std::size_t blank_end = 0;  // of the white space that is known best
    for (std::size_t at = 0; !trie.empty() && at < text.size();) {
        const Trie::Match match = trie.begins_with(text[at]) ? trie.longest(text, at) : Trie::Match{};
        if (match.token < 0) {
            ++at;
            continue;
        }
        const AddedToken& token = tokens_[static_cast<std::size_t>(match.token)];
        std::size_t begin = at;
        std::size_t end = at + match.length;
        at = end;
        if (token.special && !parse_special) continue;
        if (token.single_word && !stands_alone(text.substr(0, begin), text.substr(end))) continue;
        // The white space may belong to the token before, which then keeps it.
        if (token.lstrip && begin > done) begin = done + stripped_end(text.substr(done, begin - done));
        if (token.rstrip && end >= blank_end) blank_end = end + leading_white_space(text.substr(end));
        if (token.rstrip) end = blank_end;
        if (done < begin) out.push_back({text.substr(done, begin - done)});
        out.push_back({text.substr(begin, end - begin), token.id});
        done = end;
    }
    if (done < text.size()) out.push_back({text.substr(done)});
    return out;
}

}  // namespace hone::decoder
