// Generated from generate/enums.py by `./hone generate`.
#include "runtime/operators/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>
#include <stdexcept>

namespace hone::runtime {
namespace {

std::string_view word_of(std::string_view field, std::size_t number,
                         std::span<const std::string_view> names) {
    if (number < names.size()) return names[number];
    throw std::invalid_argument(fmt::format("{} is {}; allowed: {}", field, number, fmt::join(names, ", ")));
}

}  // namespace

std::string_view word(NormOutput output) {
    return word_of("output", static_cast<std::size_t>(output), norm_output_names);
}

std::string_view word(Activation activation) {
    return word_of("activation", static_cast<std::size_t>(activation), activation_names);
}

std::string_view word(QuantFormat format) {
    return word_of("format", static_cast<std::size_t>(format), quant_format_names);
}

std::string_view word(KvDtype kv_dtype) {
    return word_of("kv_dtype", static_cast<std::size_t>(kv_dtype), kv_dtype_names);
}

std::string_view word(RopeStyle style) {
    return word_of("style", static_cast<std::size_t>(style), rope_style_names);
}

std::string_view word(IndexType index) {
    return word_of("index", static_cast<std::size_t>(index), index_type_names);
}

}  // namespace hone::runtime
