// libhone_sentencepiece.so (bridge.h), opened at run time, once a process.
#pragma once

#include "decoder/sentencepiece/bridge.h"
#include "runtime/system/shared_library.h"

namespace hone::decoder {

struct SentencepieceLibrary {
    /// Beside the program, in the folder above it or in lib/hone next to its folder;
    /// HONE_SENTENCEPIECE_LIBRARY names another file. Throws DecoderError where there is none: what is
    /// missing, and how to do without.
    [[nodiscard]] static const SentencepieceLibrary& get();

    decltype(&hone_sentencepiece_load) load = nullptr;
    decltype(&hone_sentencepiece_free) free = nullptr;
    decltype(&hone_sentencepiece_size) size = nullptr;
    decltype(&hone_sentencepiece_piece) piece = nullptr;
    decltype(&hone_sentencepiece_is_special) is_special = nullptr;
    decltype(&hone_sentencepiece_bos) bos = nullptr;
    decltype(&hone_sentencepiece_eos) eos = nullptr;
    decltype(&hone_sentencepiece_encode) encode = nullptr;

  private:
    SentencepieceLibrary();
    runtime::SharedLibrary library_;
};

}  // namespace hone::decoder
