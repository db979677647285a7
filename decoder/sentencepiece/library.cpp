#include "decoder/sentencepiece/library.h"

#include <fmt/format.h>

#include <filesystem>

#include "decoder/error.h"
#include "runtime/system/environment.h"

namespace hone::decoder {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> places() {
    if (std::string named = runtime::environment_variable("HONE_SENTENCEPIECE_LIBRARY"); !named.empty())
        return {named};
    constexpr const char* file = "libhone_sentencepiece.so";
    std::error_code unreadable;
    const fs::path folder = fs::read_symlink("/proc/self/exe", unreadable).parent_path();
    if (unreadable) return {};
    return {folder / file, folder.parent_path() / file, folder.parent_path() / "lib" / "hone" / file};
}

template <class Function>
void resolve(const runtime::SharedLibrary& library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(library.symbol(name));
    if (function == nullptr) throw DecoderError(fmt::format("{} has no {}", library.path(), name));
}

runtime::SharedLibrary opened() {
    try {
        return runtime::SharedLibrary::open_first("Hone's module for sentencepiece", places(), "");
    } catch (const runtime::LibraryError& error) {
        throw DecoderError(
            fmt::format("tokenizer.model needs sentencepiece: {}; install libsentencepiece (Debian: "
                        "libsentencepiece0), or put a tokenizer.json beside the file",
                        error.what()));
    }
}

}  // namespace

SentencepieceLibrary::SentencepieceLibrary() : library_(opened()) {
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
