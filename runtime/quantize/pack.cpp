#include <algorithm>
#include <array>

#include "hone/quantize.h"
#include "runtime/quantize/blocks.h"
#include "runtime/quantize/check.h"
#include "runtime/system/parallel.h"

namespace hone {
namespace {

namespace places = quantized_linear;
using runtime::check_size;

constexpr std::uint8_t code_of_zero = 8;  // in w4a16 without zero points
constexpr const char* code_hint = "codes are unsigned: add 8 to signed ones, and take nibbles apart";

void pack(const std::uint8_t* codes, std::int64_t out, std::int64_t in, int bits, std::uint8_t otherwise,
          std::span<const std::uint8_t> padding, std::uint8_t* packed) {
    runtime::for_each_piece(places::whole_blocks(out), 0, [&](std::int64_t piece) {
        const runtime::RowRange rows = runtime::rows_of_piece(piece, out);
        std::array<std::uint8_t, places::block_rows> fill{};
        fill.fill(otherwise);
        if (!padding.empty()) std::copy_n(padding.data() + rows.first, rows.count, fill.data());
        runtime::pack_rows(codes + rows.first * in, rows.count, in, bits, fill.data(),
                           packed + piece * places::packed_bytes(1, in, bits));
    });
}

void unpack(const std::uint8_t* packed, std::int64_t out, std::int64_t in, int bits, std::uint8_t* codes) {
    runtime::for_each_piece(places::whole_blocks(out), 0, [&](std::int64_t piece) {
        const runtime::RowRange rows = runtime::rows_of_piece(piece, out);
        runtime::unpack_rows(packed + piece * places::packed_bytes(1, in, bits), rows.count, in, bits,
                             codes + rows.first * in);
    });
}

}  // namespace

void pack_w4(std::span<const std::uint8_t> codes, std::int64_t out, std::int64_t in,
             std::span<std::uint8_t> packed, std::span<const std::uint8_t> padding) {
    constexpr const char* where = "pack_w4";
    check_size(where, "packed", packed.size(), packed_bytes(QuantFormat::w4a16, out, in), "bytes");
    check_size(where, "codes", codes.size(), out * in, "codes");
    if (!padding.empty()) check_size(where, "padding", padding.size(), out, "codes");
    runtime::check_nibbles(where, "code", codes, in, code_hint);
    runtime::check_nibbles(where, "padding", padding, 1, code_hint);
    pack(codes.data(), out, in, 4, code_of_zero, padding, packed.data());
}

void unpack_w4(std::span<const std::uint8_t> packed, std::int64_t out, std::int64_t in,
               std::span<std::uint8_t> codes) {
    constexpr const char* where = "unpack_w4";
    check_size(where, "packed", packed.size(), packed_bytes(QuantFormat::w4a16, out, in), "bytes");
    check_size(where, "codes", codes.size(), out * in, "codes");
    unpack(packed.data(), out, in, 4, codes.data());
}

void pack_w8(std::span<const std::int8_t> codes, std::int64_t out, std::int64_t in,
             std::span<std::uint8_t> packed) {
    constexpr const char* where = "pack_w8";
    check_size(where, "packed", packed.size(), packed_bytes(QuantFormat::w8a16, out, in), "bytes");
    check_size(where, "codes", codes.size(), out * in, "codes");
    pack(reinterpret_cast<const std::uint8_t*>(codes.data()), out, in, 8, 0, {}, packed.data());
}

void unpack_w8(std::span<const std::uint8_t> packed, std::int64_t out, std::int64_t in,
               std::span<std::int8_t> codes) {
    constexpr const char* where = "unpack_w8";
    check_size(where, "packed", packed.size(), packed_bytes(QuantFormat::w8a16, out, in), "bytes");
    check_size(where, "codes", codes.size(), out * in, "codes");
    unpack(packed.data(), out, in, 8, reinterpret_cast<std::uint8_t*>(codes.data()));
}

}  // namespace hone
