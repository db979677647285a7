#include "decoder/tokenizer/sentencepiece.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "decoder/error.h"
#include "decoder/sentencepiece/library.h"
#include "decoder/text/utf8.h"
#include "decoder/tokenizer/json_file.h"
#include "decoder/tokenizer/sentencepiece_outline.h"
#include "runtime/system/text_file.h"

namespace hone::decoder {
namespace {

/// A model in the library's hands.
class Processor {
  public:
    Processor(const std::string& bytes, const std::string& file_name) {
        char error[error_bytes] = "";
        model_.reset(library_.load(bytes.data(), bytes.size(), error, sizeof(error)));
        if (!model_)
            throw DecoderError(fmt::format("{}: not a model that sentencepiece takes: {}", file_name, error));
    }

    [[nodiscard]] int size() const { return library_.size(model_.get()); }
    [[nodiscard]] std::string piece(int id) const {
        std::size_t size = 0;
        const char* bytes = library_.piece(model_.get(), id, &size);
        return {bytes, size};
    }
    [[nodiscard]] bool is_special(int id) const { return library_.is_special(model_.get(), id) != 0; }
    [[nodiscard]] int bos() const { return library_.bos(model_.get()); }
    [[nodiscard]] int eos() const { return library_.eos(model_.get()); }
    void encode(std::string_view text, std::vector<int>& ids) const {
        char error[error_bytes] = "";
        const auto take = [](void* to, int id) { static_cast<std::vector<int>*>(to)->push_back(id); };
        if (!library_.encode(model_.get(), text.data(), text.size(), take, &ids, error, sizeof(error)))
            throw DecoderError(fmt::format("sentencepiece: {}", error));
    }

  private:
    static constexpr std::size_t error_bytes = 256;
    struct Free {
        void operator()(hone_sentencepiece* model) const { SentencepieceLibrary::get().free(model); }
    };

    const SentencepieceLibrary& library_ = SentencepieceLibrary::get();
    std::unique_ptr<hone_sentencepiece, Free> model_;
};

class SentencepieceModel final : public Model {
  public:
    explicit SentencepieceModel(std::unique_ptr<const Processor> processor)
        : processor_(std::move(processor)) {}

    void encode(std::string_view word, std::vector<int>& ids, BpeWorkspace&) const override {
        processor_->encode(word, ids);
    }

  private:
    std::unique_ptr<const Processor> processor_;
};

Vocabulary vocabulary_of(const Processor& processor, const std::string& file_name) {
    Vocabulary vocabulary;
    for (int id = 0; id < processor.size(); ++id) {
        const std::string piece = processor.piece(id);
        if (!is_utf8(piece)) throw DecoderError(fmt::format("{}: piece {} is no UTF-8", file_name, id));
        vocabulary.add(piece, id);
    }
    return vocabulary;
}

/// Control tokens, which the library finds in no text, and those that were added later.
std::vector<AddedToken> added_tokens(const Processor& processor, const SpecialTokens& special) {
    std::vector<AddedToken> tokens = special.added;
    for (int id = 0; id < processor.size(); ++id) {
        if (!processor.is_special(id)) continue;
        tokens.push_back({.text = processor.piece(id), .id = id, .special = true});
    }
    return tokens;
}

PostProcessor post_processor(const Processor& processor, const SpecialTokens& special) {
    PostProcessor out;
    if (special.add_bos.value_or(true) && processor.bos() >= 0) out.before.push_back(processor.bos());
    if (special.add_eos.value_or(false) && processor.eos() >= 0) out.behind.push_back(processor.eos());
    return out;
}

}  // namespace

TokenizerParts read_sentencepiece(const std::filesystem::path& file, const SpecialTokens& special) {
    const std::string bytes = runtime::read_text_file(file, max_tokenizer_bytes);
    const SentencepieceOutline outline = sentencepiece_outline(bytes, file.string());
    auto processor = std::make_unique<const Processor>(bytes, file.string());
    TokenizerParts parts;
    parts.vocabulary = std::make_unique<const Vocabulary>(vocabulary_of(*processor, file.string()));
    parts.added = AddedTokens(added_tokens(*processor, special), parts.normalizer);
    parts.post_processor = post_processor(*processor, special);
    parts.decoder = TokenDecoder::sentencepiece(outline.add_dummy_prefix);
    parts.model = std::make_unique<const SentencepieceModel>(std::move(processor));
    return parts;
}

}  // namespace hone::decoder
