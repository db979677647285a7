#include "decoder/tokenizer/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "decoder/error.h"
#include "decoder/tokenizer/bpe.h"
#include "decoder/tokenizer/byte_alphabet.h"
#include "decoder/tokenizer/json_file.h"
#include "decoder/tokenizer/vocabulary_json.h"
#include "runtime/system/short_text.h"

namespace hone::decoder {
namespace {

using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;

/// "t h", of which each side has something.
std::pair<std::string_view, std::string_view> merge_of_text(const JsonPlace& json) {
    const std::string_view text = json.text();
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
        json.refuse("a merge is two tokens with one space between");
    return {text.substr(0, space), text.substr(space + 1)};
}

std::pair<std::string_view, std::string_view> merge_of(const JsonPlace& json) {
    if (json.value().is_string()) return merge_of_text(json);
    if (json.array_size() != 2) json.refuse("a merge is two tokens");
    return {json.at(std::size_t{0}).text(), json.at(std::size_t{1}).text()};
}

Pairs read_merges(const JsonPlace& json) {
    Pairs pairs;
    pairs.reserve(json.array_size());
    for (std::size_t i = 0; i < json.value().size(); ++i) {
        const JsonPlace merge = json.at(i);
        const bool version = merge.value().is_string() && merge.text().starts_with("#version");
        if (!version) pairs.push_back(merge_of(merge));
    }
    return pairs;
}

void refuse_text(const JsonPlace& model, const char* key) {
    const std::optional<JsonPlace> value = model.find(key);
    if (value && !value->text().empty()) value->refuse("is not understood; has to be null or empty");
}

/// Old files have no type; "merges" are BPE's alone.
void require_bpe(const JsonPlace& model) {
    const std::optional<JsonPlace> type = model.find("type");
    if (type && type->text() != "BPE") type->refuse("a model that is not understood; known is BPE");
    if (const std::optional<JsonPlace> dropout = model.find("dropout")) {
        if (!dropout->value().is_number() || dropout->value().get<double>() != 0)
            dropout->refuse("is not understood: tokens would be drawn by chance; has to be null");
    }
    refuse_text(model, "continuing_subword_prefix");
    refuse_text(model, "end_of_word_suffix");
}

std::optional<int> unknown_id(const JsonPlace& model, const Vocabulary& vocabulary) {
    const std::optional<JsonPlace> token = model.find("unk_token");
    if (!token || token->text().empty()) return std::nullopt;
    const std::optional<int> id = vocabulary.find(token->text());
    if (!id) token->refuse("is not in the vocabulary");
    return id;
}

std::unique_ptr<const Bpe> read_bpe(const JsonPlace& model, const Vocabulary& vocabulary, bool byte_level) {
    const BpeOptions options{.unknown = unknown_id(model, vocabulary),
                             .fuse_unknown = model.boolean_or("fuse_unk", false),
                             .byte_fallback = model.boolean_or("byte_fallback", false),
                             .ignore_merges = model.boolean_or("ignore_merges", false),
                             .byte_level = byte_level};
    const JsonPlace merges = model.at("merges");
    try {
        return std::make_unique<Bpe>(vocabulary, read_merges(merges), options);
    } catch (const DecoderError& error) {
        if (std::string_view(error.what()).starts_with(merges.place())) throw;
        throw DecoderError(runtime::with_short_words(fmt::format("{}: {}", merges.place(), error.what())));
    }
}

/// An id of the vocabulary holds against another one that is said.
void place_token(AddedToken token, const Vocabulary& vocabulary, std::vector<AddedToken>& tokens) {
    token.id = vocabulary.find(token.text).value_or(token.id);
    tokens.push_back(std::move(token));
}

std::vector<AddedToken> read_added(const JsonPlace& json, const Vocabulary& vocabulary,
                                   const SpecialTokens& special) {
    std::vector<AddedToken> tokens;
    if (const std::optional<JsonPlace> list = json.find("added_tokens")) {
        for (std::size_t i = 0; i < list->array_size(); ++i) {
            const JsonPlace token = list->at(i);
            const auto id = static_cast<int>(token.at("id").integer(0, max_vocabulary - 1));
            place_token(AddedToken::read(token, id), vocabulary, tokens);
        }
    }
    for (const AddedToken& token : special.added) place_token(token, vocabulary, tokens);
    return tokens;
}

TokenizerParts read_parts(const JsonPlace& json, const SpecialTokens& special) {
    TokenizerParts parts;
    if (const auto normalizer = json.find("normalizer")) parts.normalizer = Normalizer::read(*normalizer);
    if (const auto pre = json.find("pre_tokenizer")) parts.pre_tokenizer = PreTokenizer::read(*pre);
    if (const auto post = json.find("post_processor")) parts.post_processor = PostProcessor::read(*post);
    if (const auto decoder = json.find("decoder")) parts.decoder = TokenDecoder::read(*decoder);
    const JsonPlace model = json.at("model");
    require_bpe(model);
    parts.vocabulary = std::make_unique<const Vocabulary>(read_vocabulary(model.at("vocab")));
    std::unique_ptr<const Bpe> bpe = read_bpe(model, *parts.vocabulary, parts.pre_tokenizer.is_byte_level());
    if (bpe->cuts_at_marks()) parts.pre_tokenizer.cut_at_marks();
    parts.model = std::move(bpe);
    parts.added = AddedTokens(read_added(json, *parts.vocabulary, special), parts.normalizer);
    return parts;
}

}  // namespace

TokenizerParts read_tokenizer_json(const std::filesystem::path& file, const SpecialTokens& special) {
    const nlohmann::json json = read_json_file(file);
    return read_parts(JsonPlace(json, place_of(file)), special);
}

TokenizerParts made_up_tokenizer(int tokens) {
    nlohmann::json vocabulary = nlohmann::json::object();
    for (int id = 0; id < tokens; ++id) {
        const auto byte = static_cast<std::size_t>(id);
        vocabulary[id < 256 ? byte_characters()[byte] : as_byte_characters(fmt::format(" t{}", id))] = id;
    }
    const nlohmann::json level{{"type", "ByteLevel"}, {"add_prefix_space", false}};
    const nlohmann::json json{
        {"pre_tokenizer", level},
        {"decoder", level},
        {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", nlohmann::json::array()}}}};
    return read_parts(JsonPlace(json, "a made-up tokenizer"), {});
}

}  // namespace hone::decoder
