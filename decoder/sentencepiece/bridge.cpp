#include "decoder/sentencepiece/bridge.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string_view>
#include <vector>

#define HONE_BRIDGE extern "C" __attribute__((visibility("default")))

struct hone_sentencepiece {
    sentencepiece::SentencePieceProcessor processor;
};

namespace {

void copy(std::string_view text, char* to, std::size_t size) {
    if (size == 0) return;
    const std::size_t length = std::min(text.size(), size - 1);
    std::memcpy(to, text.data(), length);
    to[length] = 0;
}

}  // namespace

HONE_BRIDGE hone_sentencepiece* hone_sentencepiece_load(const char* bytes, std::size_t size, char* error,
                                                        std::size_t error_size) {
    try {
        auto model = std::make_unique<hone_sentencepiece>();
        const auto status = model->processor.LoadFromSerializedProto({bytes, size});
        if (status.ok()) return model.release();
        copy(status.message(), error, error_size);
    } catch (const std::exception& thrown) {  // by its trie
        copy(thrown.what(), error, error_size);
    }
    return nullptr;
}

HONE_BRIDGE void hone_sentencepiece_free(hone_sentencepiece* model) { delete model; }

HONE_BRIDGE int hone_sentencepiece_size(const hone_sentencepiece* model) {
    return model->processor.GetPieceSize();
}

HONE_BRIDGE const char* hone_sentencepiece_piece(const hone_sentencepiece* model, int id, std::size_t* size) {
    const std::string& piece = model->processor.IdToPiece(id);
    *size = piece.size();
    return piece.data();
}

HONE_BRIDGE int hone_sentencepiece_is_special(const hone_sentencepiece* model, int id) {
    return static_cast<int>(model->processor.IsControl(id) || model->processor.IsUnknown(id));
}

HONE_BRIDGE int hone_sentencepiece_bos(const hone_sentencepiece* model) { return model->processor.bos_id(); }
HONE_BRIDGE int hone_sentencepiece_eos(const hone_sentencepiece* model) { return model->processor.eos_id(); }

HONE_BRIDGE bool hone_sentencepiece_encode(const hone_sentencepiece* model, const char* text,
                                           std::size_t size, void (*take)(void* user, int id), void* user,
                                           char* error, std::size_t error_size) {
    std::vector<int> ids;
    const auto status = model->processor.Encode({text, size}, &ids);
    if (!status.ok()) {
        copy(status.message(), error, error_size);
        return false;
    }
    for (const int id : ids) take(user, id);
    return true;
}
