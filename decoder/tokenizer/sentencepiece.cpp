#include "decoder/tokenizer/sentencepiece.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <string>
#include <utility>

#include "decoder/error.h"
#include "decoder/text/utf8.h"
#include "decoder/tokenizer/json_file.h"
#include "decoder/tokenizer/sentencepiece_outline.h"
#include "runtime/system/text_file.h"

namespace hone::decoder {
namespace {

using Processor = sentencepiece::SentencePieceProcessor;

class SentencepieceModel final : public Model {
  public:
    explicit SentencepieceModel(std::unique_ptr<const Processor> processor)
        : processor_(std::move(processor)) {}

    void encode(std::string_view word, std::vector<int>& ids, BpeWorkspace&) const override {
        std::vector<int> found;
        const sentencepiece::util::Status status = processor_->Encode(word, &found);
        if (!status.ok()) throw DecoderError(fmt::format("sentencepiece: {}", status.message()));
        ids.insert(ids.end(), found.begin(), found.end());
    }

  private:
    std::unique_ptr<const Processor> processor_;
};

std::unique_ptr<const Processor> loaded(const std::string& bytes, const std::string& file_name) {
    auto processor = std::make_unique<Processor>();
    const sentencepiece::util::Status status = processor->LoadFromSerializedProto(bytes);
    if (!status.ok())
        throw DecoderError(
            fmt::format("{}: not a model that sentencepiece takes: {}", file_name, status.message()));
    return processor;
}

Vocabulary vocabulary_of(const Processor& processor, const std::string& file_name) {
    Vocabulary vocabulary;
    for (int id = 0; id < processor.GetPieceSize(); ++id) {
        const std::string& piece = processor.IdToPiece(id);
        if (!is_utf8(piece)) throw DecoderError(fmt::format("{}: piece {} is no UTF-8", file_name, id));
        vocabulary.add(piece, id);
    }
    return vocabulary;
}

/// Control tokens, which the library finds in no text, and those that were added later.
std::vector<AddedToken> added_tokens(const Processor& processor, const SpecialTokens& special) {
    std::vector<AddedToken> tokens = special.added;
    for (int id = 0; id < processor.GetPieceSize(); ++id) {
        if (!processor.IsControl(id) && !processor.IsUnknown(id)) continue;
        tokens.push_back({.text = processor.IdToPiece(id), .id = id, .special = true});
    }
    return tokens;
}

PostProcessor post_processor(const Processor& processor, const SpecialTokens& special) {
    PostProcessor out;
    if (special.add_bos.value_or(true) && processor.bos_id() >= 0) out.before.push_back(processor.bos_id());
    if (special.add_eos.value_or(false) && processor.eos_id() >= 0) out.behind.push_back(processor.eos_id());
    return out;
}

}  // namespace

TokenizerParts read_sentencepiece(const std::filesystem::path& file, const SpecialTokens& special) {
    const std::string bytes = runtime::read_text_file(file, max_tokenizer_bytes);
    const SentencepieceOutline outline = sentencepiece_outline(bytes, file.string());
    std::unique_ptr<const Processor> processor = loaded(bytes, file.string());
    TokenizerParts parts;
    parts.vocabulary = std::make_unique<const Vocabulary>(vocabulary_of(*processor, file.string()));
    parts.added = AddedTokens(added_tokens(*processor, special), parts.normalizer);
    parts.post_processor = post_processor(*processor, special);
    parts.decoder = TokenDecoder::sentencepiece(outline.add_dummy_prefix);
    parts.model = std::make_unique<const SentencepieceModel>(std::move(processor));
    return parts;
}

}  // namespace hone::decoder
