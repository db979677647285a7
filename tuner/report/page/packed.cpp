#include "tuner/report/page/packed.h"

#include <zlib.h>

#include <cstdint>
#include <new>

namespace hone::tuner {

std::string base64(std::string_view bytes) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t group = 0;
        for (std::size_t k = 0; k < 3; ++k)
            group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
        for (std::size_t k = 0; k < 4; ++k)
            text += i + k > bytes.size() ? '=' : digits[group >> (18 - 6 * k) & 63];
    }
    return text;
}

std::string packed(std::string_view text) {
    uLongf length = compressBound(text.size());
    std::string bytes(length, '\0');
    const int ended = compress2(reinterpret_cast<Bytef*>(bytes.data()), &length,
                                reinterpret_cast<const Bytef*>(text.data()), text.size(), Z_BEST_COMPRESSION);
    if (ended != Z_OK) throw std::bad_alloc();  // the buffer is large enough
    return base64(std::string_view(bytes).substr(0, length));
}

}  // namespace hone::tuner
