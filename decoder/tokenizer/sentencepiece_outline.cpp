#include "decoder/tokenizer/sentencepiece_outline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "decoder/error.h"

namespace hone::decoder {
namespace {

// Numbers of fields in ModelProto, SentencePiece and NormalizerSpec.
constexpr std::uint64_t pieces_field = 1;
constexpr std::uint64_t text_field = 1;
constexpr std::uint64_t type_field = 3;
constexpr std::uint64_t user_defined = 4;
constexpr std::uint64_t normalizer_field = 3;
constexpr std::uint64_t denormalizer_field = 5;
constexpr std::uint64_t table_field = 2;
constexpr std::uint64_t dummy_prefix_field = 3;

/// The library builds its trie by recursion, a call for each byte of a piece.
constexpr std::size_t max_piece_bytes = 4096;
/// The library's array for user-defined pieces that begin at one place; those beyond are read all the same.
constexpr std::size_t max_nested_pieces = 64;

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

/// What the library takes without a look and does not survive.
class PieceCheck {
  public:
    explicit PieceCheck(const std::string& file_name) : file_name_(file_name) {}

    void add(std::string_view message) {
        std::string_view text;
        std::uint64_t type = 0;
        for (Fields fields(message, file_name_); !fields.done();) {
            const Fields::Field field = fields.next();
            if (field.number == text_field) text = field.content;
            if (field.number == type_field) type = field.value;
        }
        if (text.size() > max_piece_bytes)
            refuse(fmt::format("piece {} has {} bytes; allowed: up to {}", count_, text.size(),
                               max_piece_bytes));
        if (text.find('\0') != std::string_view::npos)
            refuse(fmt::format("piece {} holds a zero byte", count_));
        if (type == user_defined) user_defined_.push_back(text);
        ++count_;
    }

    /// Sorted, a piece stands behind those that it begins with.
    void require_few_nested() {
        std::ranges::sort(user_defined_);
        std::vector<std::string_view> beginnings;
        for (const std::string_view piece : user_defined_) {
            while (!beginnings.empty() && !piece.starts_with(beginnings.back())) beginnings.pop_back();
            beginnings.push_back(piece);
            if (beginnings.size() > max_nested_pieces)
                refuse(fmt::format("more than {} user-defined pieces begin with one another",
                                   max_nested_pieces));
        }
    }

  private:
    [[noreturn]] void refuse(const std::string& why) const {
        throw DecoderError(fmt::format("{}: {}", file_name_, why));
    }

    const std::string& file_name_;
    std::size_t count_ = 0;
    std::vector<std::string_view> user_defined_;
};

}  // namespace

SentencepieceOutline sentencepiece_outline(std::string_view bytes, const std::string& file_name) {
    SentencepieceOutline out;
    SentencepieceOutline unused;
    PieceCheck pieces(file_name);
    for (Fields fields(bytes, file_name); !fields.done();) {
        const Fields::Field field = fields.next();
        if (field.number == pieces_field) pieces.add(field.content);
        if (field.number == normalizer_field) read_normalizer(field.content, file_name, out);
        if (field.number == denormalizer_field) read_normalizer(field.content, file_name, unused);
    }
    pieces.require_few_nested();
    return out;
}

}  // namespace hone::decoder
