// Choices that operators offer, with their numbers, which never change their meaning, and their words.
// Generated from generate/enums.py by `./hone generate`.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hone {

/// What a norm writes to `out`. Quantized rows are symmetric with one scale each: out * scale approximates y,
/// and scale = max|y| / 127 (int8) or max|y| / 448 (fp8).
enum class NormOutput : std::uint8_t {
    same,  ///< the operator's dtype
    int8,
    fp8,  ///< E4M3
};
/// Their words, by number.
inline constexpr std::array<std::string_view, 3> norm_output_names{"same", "int8", "fp8"};

/// What becomes of an element of a product.
enum class Activation : std::uint8_t {
    none,
    gelu_tanh,  ///< 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
    gelu_erf,   ///< 0.5 x (1 + erf(x / sqrt(2)))
    silu,       ///< x / (1 + exp(-x))
    relu,
    /// gated experts alone, as gpt-oss has them: g / (1 + exp(-1.702 g)) * (u + 1), where g is the gate's
    /// product, at most 7, and u the other one, from -7 to 7
    swiglu_oai,
};
/// Their words, by number.
inline constexpr std::array<std::string_view, 6> activation_names{"none", "gelu_tanh", "gelu_erf",
                                                                  "silu", "relu",      "swiglu_oai"};

/// How a weight is stored: value = (code - zero point) * scale. docs/formats.md says where each bit stands.
enum class QuantFormat : std::uint8_t {
    w4a16,  ///< codes 0 to 15 in blocks of 64 x 64; zero points 0 to 15, or 8 for all
    w8a16,  ///< codes -127 to 127 in blocks of 64 x 64
    w8a8,   ///< codes -127 to 127, [out, in]; x is multiplied as such codes, too
    fp8,    ///< codes are E4M3 numbers, [out, in]; so is x
};
/// Their words, by number.
inline constexpr std::array<std::string_view, 4> quant_format_names{"w4a16", "w8a16", "w8a8", "fp8"};

/// What a KV cache holds.
enum class KvDtype : std::uint8_t {
    same,  ///< the operator's dtype
    fp8,   ///< E4M3 codes; code * scale of its kv head approximates the element
};
/// Their words, by number.
inline constexpr std::array<std::string_view, 2> kv_dtype_names{"same", "fp8_e4m3"};

/// Which elements of a head turn together.
enum class RopeStyle : std::uint8_t {
    half,         ///< i and i + rotary_dim / 2, as in Llama
    interleaved,  ///< 2 i and 2 i + 1, as in GPT-J
};
/// Their words, by number.
inline constexpr std::array<std::string_view, 2> rope_style_names{"half", "interleaved"};

/// The type of ids on the device.
enum class IndexType : std::uint8_t {
    int32,
    int64,
};
/// Their words, by number.
inline constexpr std::array<std::string_view, 2> index_type_names{"int32", "int64"};

}  // namespace hone
