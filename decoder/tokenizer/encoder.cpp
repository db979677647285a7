#include "decoder/tokenizer/encoder.h"

#include <utility>

namespace hone::decoder {

std::vector<int> Encoder::encode(std::string_view text, bool parse_special) {
    ids_.clear();
    for (const TextSection& section : parts_.added.split_raw(text, parse_special)) {
        if (section.id >= 0)
            ids_.push_back(section.id);
        else
            encode_raw(section.text, section.text.data() == text.data(), parse_special);
    }
    return std::move(ids_);
}

void Encoder::encode_raw(std::string_view section, bool first, bool parse_special) {
    const std::string normalized = parts_.normalizer.apply(section);
    const std::string_view all = normalized;
    for (const TextSection& part : parts_.added.split_normalized(all, parse_special)) {
        if (part.id >= 0)
            ids_.push_back(part.id);
        else
            encode_normalized(part.text, first && part.text.data() == all.data());
    }
}

void Encoder::encode_normalized(std::string_view section, bool first) {
    Pieces pieces{.list = {{section, first}}};
    parts_.pre_tokenizer.apply(pieces);
    const auto encode_word = [&](std::string_view word, std::vector<int>& ids) {
        parts_.model->encode(word, ids, workspace_);
    };
    for (const Piece& piece : pieces.list) cache_.encode(piece.text, ids_, encode_word);
}

}  // namespace hone::decoder
