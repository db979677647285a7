#include "decoder/tokenizer/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "decoder/error.h"
#include "decoder/text/utf8.h"
#include "decoder/tokenizer/byte_alphabet.h"
#include "decoder/tokenizer/space_mark.h"

namespace hone::decoder {
namespace {

using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;

constexpr std::uint32_t nothing = std::numeric_limits<std::uint32_t>::max();

std::string byte_token(unsigned char byte) { return fmt::format("<0x{:02X}>", byte); }

std::array<int, 256> byte_tokens(const Vocabulary& vocabulary, bool byte_level) {
    std::array<int, 256> tokens{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
        const std::string fallback = byte_token(static_cast<unsigned char>(byte));
        tokens[byte] = vocabulary.find(byte_level ? byte_characters()[byte] : fallback).value_or(-1);
    }
    return tokens;
}

bool crosses_mark(const std::pair<std::string_view, std::string_view>& pair) {
    return !pair.first.ends_with(space_mark) && pair.second.starts_with(space_mark);
}

/// A run of unknown characters ends at a mark only where that is a token.
bool can_cut_at_marks(const Vocabulary& vocabulary, const Pairs& pairs, const BpeOptions& options) {
    return !options.byte_level && !options.ignore_merges && vocabulary.find(space_mark) &&
           std::ranges::none_of(pairs, crosses_mark);
}

void add_symbol(int id, BpeWorkspace& workspace) {
    const auto index = static_cast<std::uint32_t>(workspace.symbols.size());
    workspace.symbols.push_back({id, index == 0 ? nothing : index - 1, index + 1});
}

}  // namespace

/// Unknown characters that are still without their token: a later one may join them.
struct Bpe::Unknown {
    bool waiting = false;

    void flush(int id, BpeWorkspace& workspace) {
        if (waiting) add_symbol(id, workspace);
        waiting = false;
    }
};

Bpe::Bpe(const Vocabulary& vocabulary, const Pairs& pairs, BpeOptions options)
    : vocabulary_(&vocabulary), options_(options), bytes_(byte_tokens(vocabulary, options.byte_level)) {
    std::vector<Merge> merges;
    merges.reserve(pairs.size());
    for (const auto& [left, right] : pairs)
        merges.push_back(merge_of(left, right, static_cast<std::uint32_t>(merges.size())));
    merges_ = Merges(std::move(merges), vocabulary.end_id());
    cuts_at_marks_ = can_cut_at_marks(vocabulary, pairs, options);
}

Merge Bpe::merge_of(std::string_view left, std::string_view right, std::uint32_t rank) const {
    const auto id_of = [&](const std::string& text) {
        if (const std::optional<int> id = vocabulary_->find(text)) return *id;
        throw DecoderError(
            fmt::format("merge {} of '{}' and '{}': '{}' is not in the vocabulary", rank, left, right, text));
    };
    const std::string first(left);
    return {id_of(first), id_of(std::string(right)), rank, id_of(first + std::string(right))};
}

void Bpe::encode(std::string_view word, std::vector<int>& ids, BpeWorkspace& workspace) const {
    if (const std::optional<int> whole = whole_word(word)) return ids.push_back(*whole);
    workspace.symbols.clear();
    add_characters(word, workspace);
    join(workspace);
    for (const BpeWorkspace::Symbol& symbol : workspace.symbols)
        if (symbol.id >= 0) ids.push_back(symbol.id);
}

std::optional<int> Bpe::whole_word(std::string_view word) const {
    if (!options_.ignore_merges) return std::nullopt;
    return options_.byte_level ? vocabulary_->find(as_byte_characters(word)) : vocabulary_->find(word);
}

void Bpe::add_characters(std::string_view word, BpeWorkspace& workspace) const {
    Unknown unknown;
    while (!word.empty()) {
        const std::size_t length = options_.byte_level ? 1 : first_length(word);
        const std::string_view character = word.substr(0, length);
        word.remove_prefix(length);
        const int id = options_.byte_level ? bytes_[static_cast<unsigned char>(character[0])]
                                           : vocabulary_->find(character).value_or(-1);
        if (id < 0) {
            add_unknown(character, unknown, workspace);
        } else {
            unknown.flush(options_.unknown.value_or(-1), workspace);
            add_symbol(id, workspace);
        }
    }
    unknown.flush(options_.unknown.value_or(-1), workspace);
}

void Bpe::add_unknown(std::string_view character, Unknown& unknown, BpeWorkspace& workspace) const {
    if (options_.byte_fallback && add_bytes(character, workspace)) return;
    if (!options_.unknown) return;
    if (!options_.fuse_unknown) unknown.flush(*options_.unknown, workspace);
    unknown.waiting = true;
}

/// Not at byte level, where each byte is a character. All bytes of a character or none.
bool Bpe::add_bytes(std::string_view character, BpeWorkspace& workspace) const {
    if (options_.byte_level) return false;
    const auto token = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
    if (std::ranges::any_of(character, [&](char byte) { return token(byte) < 0; })) return false;
    for (const char byte : character) add_symbol(token(byte), workspace);
    return true;
}

void Bpe::consider(std::uint32_t position, BpeWorkspace& workspace) const {
    const std::vector<BpeWorkspace::Symbol>& symbols = workspace.symbols;
    const std::uint32_t next = symbols[position].next;
    if (next >= symbols.size()) return;
    const Merge* const merge = merges_.find(symbols[position].id, symbols[next].id);
    if (merge == nullptr) return;
    workspace.queue.push({merge->rank, position});
}

void Bpe::join(BpeWorkspace& workspace) const {
    std::vector<BpeWorkspace::Symbol>& symbols = workspace.symbols;
    workspace.queue.begin(symbols.size());
    for (std::uint32_t position = 0; position + 1 < symbols.size(); ++position) consider(position, workspace);
    while (const std::optional<MergeQueue::Candidate> candidate = workspace.queue.pop()) {
        const std::uint32_t position = candidate->position;
        BpeWorkspace::Symbol& symbol = symbols[position];
        if (symbol.id < 0 || symbol.next >= symbols.size()) continue;
        // One of the two may have been joined to another one meanwhile.
        const Merge* const merge = merges_.find(symbol.id, symbols[symbol.next].id);
        if (merge == nullptr || merge->rank != candidate->rank) continue;
        symbols[symbol.next].id = -1;
        symbol.id = merge->result;
        symbol.next = symbols[symbol.next].next;
        if (symbol.next < symbols.size()) symbols[symbol.next].previous = position;
        if (symbol.previous != nothing) consider(symbol.previous, workspace);
        consider(position, workspace);
    }
}

}  // namespace hone::decoder
