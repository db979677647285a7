#include "decoder/sentencepiece/library.h"

#include "decoder/module.h"

namespace hone::decoder {
SentencepieceLibrary::SentencepieceLibrary()
    : library_(opened_module("Hone's module for sentencepiece", "libhone_sentencepiece.so",
                             "HONE_SENTENCEPIECE_LIBRARY", "tokenizer.model needs sentencepiece",
                             "install libsentencepiece (Debian: libsentencepiece0), or put a tokenizer.json "
                             "beside the file")) {
    resolve(library_, "hone_sentencepiece_load", load);
    resolve(library_, "hone_sentencepiece_free", free);
    resolve(library_, "hone_sentencepiece_size", size);
    resolve(library_, "hone_sentencepiece_piece", piece);
    resolve(library_, "hone_sentencepiece_is_special", is_special);
    resolve(library_, "hone_sentencepiece_bos", bos);
    resolve(library_, "hone_sentencepiece_eos", eos);
    resolve(library_, "hone_sentencepiece_encode", encode);
}

const SentencepieceLibrary& SentencepieceLibrary::get() {
    static const SentencepieceLibrary library;
    return library;
}

}  // namespace hone::decoder
