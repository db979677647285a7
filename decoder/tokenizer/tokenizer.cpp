#include "decoder/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <system_error>
#include <utility>

#include "decoder/error.h"
#include "decoder/text/utf8.h"
#include "decoder/tokenizer/encoder.h"
#include "decoder/tokenizer/gpt2_files.h"
#include "decoder/tokenizer/sentencepiece.h"
#include "decoder/tokenizer/tokenizer_json.h"
#include "runtime/system/text_file.h"

namespace hone::decoder {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t cached_words = 1U << 16;  ///< 4 MiB
constexpr std::size_t own_words = 1U << 10;     ///< of a call that finds the cache in use

TokenizerParts read_parts(const fs::path& folder, const SpecialTokens& special) {
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored))
        throw DecoderError(fmt::format("'{}' is no folder; needed is that of a model", folder.string()));
    if (runtime::has_entry(folder / "tokenizer.json"))
        return read_tokenizer_json(folder / "tokenizer.json", special);
    if (runtime::has_entry(folder / "vocab.json") && runtime::has_entry(folder / "merges.txt"))
        return read_gpt2_files(folder, special);
    if (runtime::has_entry(folder / "tokenizer.model"))
        return read_sentencepiece(folder / "tokenizer.model", special);
    throw DecoderError(
        fmt::format("{}: no tokenizer in this folder; it is read from tokenizer.json, from vocab.json with "
                    "merges.txt, or from "
                    "tokenizer.model",
                    folder.string()));
}

std::optional<int> id_of(const TokenizerParts& parts, std::string_view token) {
    const AddedToken* const added = parts.added.find(token);
    return added != nullptr ? added->id : parts.vocabulary->find(token);
}

std::optional<int> bos_of(const TokenizerParts& parts, const SpecialTokens& special) {
    if (special.bos_id) return special.bos_id;
    return special.bos ? id_of(parts, *special.bos) : std::nullopt;
}

/// The ids that are said, and that of the token that is named.
std::vector<int> eos_of(const TokenizerParts& parts, const SpecialTokens& special) {
    std::vector<int> ids = special.eos_ids;
    const std::optional<int> named = special.eos ? id_of(parts, *special.eos) : std::nullopt;
    if (named && std::ranges::find(ids, *named) == ids.end()) ids.push_back(*named);
    return ids;
}

int end_of_ids(const TokenizerParts& parts) {
    int end = parts.vocabulary->end_id();
    for (const AddedToken& token : parts.added.all()) end = std::max(end, token.id + 1);
    return end;
}

}  // namespace

struct Tokenizer::State {
    State(TokenizerParts read, const SpecialTokens& special)
        : parts(std::move(read)),
          bos(bos_of(parts, special)),
          eos(eos_of(parts, special)),
          end_id(end_of_ids(parts)) {}

    TokenizerParts parts;
    std::optional<int> bos;
    std::vector<int> eos;
    int end_id = 0;
    mutable std::mutex cache_in_use{};
    mutable WordCache cache{cached_words};

    std::vector<int> encode(std::string_view text, bool parse_special) const {
        const std::unique_lock lock(cache_in_use, std::try_to_lock);
        if (lock.owns_lock()) return Encoder(parts, cache).encode(text, parse_special);
        WordCache own(own_words);
        return Encoder(parts, own).encode(text, parse_special);
    }
};

Tokenizer Tokenizer::load(const fs::path& folder) {
    const SpecialTokens special = read_special_tokens(folder);
    return Tokenizer(std::make_shared<const State>(read_parts(folder, special), special));
}

Tokenizer Tokenizer::made_up(int tokens) {
    return Tokenizer(std::make_shared<const State>(made_up_tokenizer(tokens), SpecialTokens{}));
}

std::vector<int> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
    if (text.size() > max_text_bytes) {
        throw DecoderError(fmt::format("a text of {} bytes; the most that is encoded at once is {}",
                                       text.size(), max_text_bytes));
    }
    if (!is_utf8(text)) return encode(lossy_utf8(text), options);
    std::vector<int> ids = state_->encode(text, options.parse_special_tokens);
    if (!options.add_special_tokens) return ids;
    const PostProcessor& around = state_->parts.post_processor;
    ids.insert(ids.begin(), around.before.begin(), around.before.end());
    ids.insert(ids.end(), around.behind.begin(), around.behind.end());
    return ids;
}

std::string Tokenizer::decode(std::span<const int> ids, DecodeOptions options) const {
    TextStream stream(*this, options, Decoding::whole);
    std::string text;
    for (const int id : ids) text += stream.push(id);
    return text += stream.finish();
}

TextStream Tokenizer::stream(DecodeOptions options) const { return {*this, options, Decoding::streamed}; }

std::optional<int> Tokenizer::id_of(std::string_view token) const {
    return decoder::id_of(state_->parts, token);
}

std::optional<std::string_view> Tokenizer::token_of(int id) const {
    const AddedToken* const added = state_->parts.added.find(id);
    return added != nullptr ? std::string_view(added->text) : state_->parts.vocabulary->text_of(id);
}

std::string Tokenizer::bytes_of(int id) const {
    TextStream stream(*this, {.skip_special_tokens = false}, Decoding::bytes);
    static_cast<void>(stream.push(id));  // what is left out at a text's beginning belongs to its token, too
    return stream.push(id);
}

bool Tokenizer::is_special(int id) const {
    const AddedToken* const added = state_->parts.added.find(id);
    return added != nullptr && added->special;
}

int Tokenizer::end_id() const { return state_->end_id; }
std::optional<int> Tokenizer::bos_id() const { return state_->bos; }
const std::vector<int>& Tokenizer::eos_ids() const { return state_->eos; }

TextStream::TextStream(Tokenizer tokenizer, DecodeOptions options, Decoding decoding)
    : tokenizer_(std::move(tokenizer)),
      options_(options),
      tokens_(tokenizer_.state_->parts.decoder.start(decoding)) {}

std::string TextStream::push(int id) {
    const TokenizerParts& parts = tokenizer_.state_->parts;
    if (const AddedToken* const added = parts.added.find(id)) {
        const bool skipped = added->special && options_.skip_special_tokens;
        return skipped ? std::string() : tokens_.push(added->found);
    }
    const std::optional<std::string_view> token = parts.vocabulary->text_of(id);
    return token ? tokens_.push(*token) : std::string();
}

std::string TextStream::finish() { return tokens_.finish(); }

}  // namespace hone::decoder
