#include "decoder/tokenizer/sentencepiece_outline.h"

#include <fmt/format.h>

#include <cstdint>

#include "decoder/error.h"

namespace hone::decoder {
namespace {

// Numbers of fields in ModelProto and NormalizerSpec.
constexpr std::uint64_t normalizer_field = 3;
constexpr std::uint64_t denormalizer_field = 5;
constexpr std::uint64_t table_field = 2;
constexpr std::uint64_t dummy_prefix_field = 3;

/// Fields of a message of protocol buffers, one after the other.
class Fields {
  public:
    Fields(std::string_view bytes, const std::string& file_name) : rest_(bytes), file_name_(file_name) {}

    struct Field {
        std::uint64_t number = 0;
        std::uint64_t value = 0;        ///< of a number
        std::string_view content = {};  ///< of bytes or a message
    };

    [[nodiscard]] bool done() const { return rest_.empty(); }

    Field next() {
        const std::uint64_t tag = varint();
        Field field{.number = tag >> 3};
        switch (tag & 7) {
            case 0: field.value = varint(); break;
            case 1: field.content = take(8); break;
            case 2: field.content = take(varint()); break;
            case 5: field.content = take(4); break;
            default: refuse();
        }
        return field;
    }

  private:
    [[noreturn]] void refuse() const {
        throw DecoderError(fmt::format("{}: not a model of sentencepiece, or cut short", file_name_));
    }

    std::string_view take(std::uint64_t bytes) {
        if (bytes > rest_.size()) refuse();
        const std::string_view taken = rest_.substr(0, bytes);
        rest_.remove_prefix(bytes);
        return taken;
    }

    std::uint64_t varint() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const auto byte = static_cast<unsigned char>(take(1)[0]);
            value |= std::uint64_t{byte & 0x7FU} << shift;
            if (byte < 0x80) return value;
        }
        refuse();
    }

    std::string_view rest_;
    const std::string& file_name_;
};

void read_normalizer(std::string_view bytes, const std::string& file_name, SentencepieceOutline& out) {
    for (Fields fields(bytes, file_name); !fields.done();) {
        const Fields::Field field = fields.next();
        if (field.number == dummy_prefix_field) out.add_dummy_prefix = field.value != 0;
        if (field.number == table_field && !field.content.empty()) {
            throw DecoderError(
                fmt::format("{}: its normalizer rewrites characters; only models with the normalizer "
                            "\"identity\" are read. Save the "
                            "tokenizer as tokenizer.json",
                            file_name));
        }
    }
}

}  // namespace

SentencepieceOutline sentencepiece_outline(std::string_view bytes, const std::string& file_name) {
    SentencepieceOutline out;
    SentencepieceOutline unused;
    for (Fields fields(bytes, file_name); !fields.done();) {
        const Fields::Field field = fields.next();
        if (field.number == normalizer_field) read_normalizer(field.content, file_name, out);
        if (field.number == denormalizer_field) read_normalizer(field.content, file_name, unused);
    }
    return out;
}

}  // namespace hone::decoder
