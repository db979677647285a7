#include "decoder/tokenizer/added_tokens.h"

#include <algorithm>
#include <numeric>
#include <ranges>

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

void AddedTokens::Finder::add(std::string_view text, int token) {
    if (text.empty()) return;
    std::uint32_t node = 0;
    for (std::size_t i = text.size(); i-- > 0;) {
        const std::uint64_t edge = std::uint64_t{node} << 8 | static_cast<unsigned char>(text[i]);
        const auto [place, added] = edges_.try_emplace(edge, static_cast<std::uint32_t>(nodes_.size()));
        if (added) nodes_.push_back({.parent = node, .depth = nodes_[node].depth + 1, .byte = text[i]});
        node = place->second;
    }
    if (nodes_[node].token < 0) nodes_[node].token = token;
    last_.set(static_cast<unsigned char>(text.back()));
}

void AddedTokens::Finder::link() {
    std::vector<std::uint32_t> by_depth(nodes_.size());
    std::iota(by_depth.begin(), by_depth.end(), 0U);
    std::ranges::stable_sort(by_depth, {}, [this](std::uint32_t node) { return nodes_[node].depth; });
    for (const std::uint32_t index : by_depth) {
        Node& node = nodes_[index];
        if (node.depth > 1) node.shorter = step(nodes_[node.parent].shorter, node.byte);
        if (node.token < 0) node.token = nodes_[node.shorter].token;
    }
}

std::optional<std::uint32_t> AddedTokens::Finder::next(std::uint32_t node, char byte) const {
    const auto found = edges_.find(std::uint64_t{node} << 8 | static_cast<unsigned char>(byte));
    return found == edges_.end() ? std::nullopt : std::optional(found->second);
}

std::uint32_t AddedTokens::Finder::step(std::uint32_t node, char byte) const {
    while (node != 0) {
        if (const auto found = next(node, byte)) return *found;
        node = nodes_[node].shorter;
    }
    return last_[static_cast<unsigned char>(byte)] ? *next(0, byte) : 0;
}

std::vector<AddedTokens::Finder::Match> AddedTokens::Finder::find(std::string_view text) const {
    std::vector<Match> matches;
    if (last_.none()) return matches;
    std::uint32_t node = 0;
    for (std::size_t at = text.size(); at-- > 0;) {
        node = step(node, text[at]);
        if (nodes_[node].token >= 0) matches.push_back({at, nodes_[node].token});
    }
    return matches;
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
    raw_.link();
    normalized_.link();
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

std::vector<TextSection> AddedTokens::split(std::string_view text, const Finder& finder,
                                            bool parse_special) const {
    std::vector<TextSection> out;
    std::size_t done = 0;
    std::size_t blank_end = 0;  // of the white space that is known best
    std::size_t behind = 0;     // the text that was found last
    const std::vector<Finder::Match> matches = finder.find(text);
    for (const auto& [at, index] : matches | std::views::reverse) {
        if (at < behind) continue;
        const AddedToken& token = tokens_[static_cast<std::size_t>(index)];
        std::size_t begin = at;
        std::size_t end = behind = at + token.found.size();
        if (token.special && !parse_special) continue;
        if (token.single_word && !stands_alone(text.substr(0, begin), text.substr(end))) continue;
        // The white space may belong to the token before, which then keeps it; if that is all of it, the
        // token is none.
        if (token.lstrip)
            begin = begin > done ? done + stripped_end(text.substr(done, begin - done)) : done;
        if (token.rstrip && end >= blank_end) blank_end = end + leading_white_space(text.substr(end));
        if (token.rstrip) end = blank_end;
        if (begin >= end) continue;
        if (done < begin) out.push_back({text.substr(done, begin - done)});
        out.push_back({text.substr(begin, end - begin), token.id});
        done = end;
    }
    if (done < text.size()) out.push_back({text.substr(done)});
    return out;
}

}  // namespace hone::decoder
