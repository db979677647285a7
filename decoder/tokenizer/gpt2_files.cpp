#include "decoder/tokenizer/gpt2_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "decoder/error.h"
#include "decoder/tokenizer/bpe.h"
#include "decoder/tokenizer/json_file.h"
#include "decoder/tokenizer/vocabulary_json.h"
#include "runtime/system/short_text.h"
#include "runtime/system/text_file.h"

namespace hone::decoder {
namespace {

namespace fs = std::filesystem;
using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;

constexpr std::string_view qwen2_regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// How text is cut, by "tokenizer_class".
std::string_view regex_of(const fs::path& folder, const std::string& tokenizer_class) {
    constexpr std::array<std::string_view, 3> as_gpt2{"", "GPT2Tokenizer", "GPT2TokenizerFast"};
    if (std::ranges::find(as_gpt2, tokenizer_class) != as_gpt2.end()) return gpt2_regex();
    if (tokenizer_class == "Qwen2Tokenizer" || tokenizer_class == "Qwen2TokenizerFast") return qwen2_regex;
    throw DecoderError(
        fmt::format("{}tokenizer_class: \"{}\": how it cuts text is not known; vocab.json and merges.txt are "
                    "read for GPT2Tokenizer and "
                    "Qwen2Tokenizer. Save the tokenizer as tokenizer.json, which says it",
                    place_of(folder / "tokenizer_config.json"), tokenizer_class));
}

Pairs read_merges(std::string_view text, const fs::path& file) {
    Pairs pairs;
    for (std::size_t line_number = 1; !text.empty(); ++line_number) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty() || line.starts_with("#version")) continue;
        const std::size_t space = line.find(' ');
        if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
            throw DecoderError(fmt::format("{}:{}: a merge is two tokens with one space between",
                                           file.string(), line_number));
        }
        pairs.emplace_back(line.substr(0, space), line.substr(space + 1));
    }
    return pairs;
}

std::unique_ptr<const Bpe> read_bpe(const fs::path& file, const Vocabulary& vocabulary) {
    const std::string text = runtime::read_text_file(file, max_tokenizer_bytes);
    const Pairs pairs = read_merges(text, file);
    try {
        return std::make_unique<const Bpe>(vocabulary, pairs, BpeOptions{.byte_level = true});
    } catch (const DecoderError& error) {
        throw DecoderError(runtime::with_short_words(place_of(file) + error.what()));
    }
}

Vocabulary read_vocabulary_file(const fs::path& file) {
    const nlohmann::json json = read_json_file(file);
    return read_vocabulary(JsonPlace(json, place_of(file)));
}

/// What the table of added tokens has, and BOS, EOS and the unknown token where that lacks them.
AddedTokens added_tokens(const Vocabulary& vocabulary, const SpecialTokens& special,
                         const Normalizer& normalizer) {
    std::vector<AddedToken> tokens = special.added;
    for (const std::optional<std::string>& text : {special.bos, special.eos, special.unknown}) {
        const std::optional<int> id = text ? vocabulary.find(*text) : std::nullopt;
        if (id) tokens.push_back({.text = *text, .id = *id, .special = true});
    }
    return {std::move(tokens), normalizer};
}

}  // namespace

TokenizerParts read_gpt2_files(const fs::path& folder, const SpecialTokens& special) {
    TokenizerParts parts;
    const std::string_view regex = regex_of(folder, special.tokenizer_class);
    if (regex == qwen2_regex) parts.normalizer = Normalizer::of_form(NormalForm::nfc);
    parts.pre_tokenizer = PreTokenizer::byte_level(regex, special.add_prefix_space);
    parts.decoder = TokenDecoder::byte_level();
    parts.vocabulary = std::make_unique<const Vocabulary>(read_vocabulary_file(folder / "vocab.json"));
    parts.model = read_bpe(folder / "merges.txt", *parts.vocabulary);
    parts.added = added_tokens(*parts.vocabulary, special, parts.normalizer);
    return parts;
}

}  // namespace hone::decoder
