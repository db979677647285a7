#include "checkpoints/read/awq.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "checkpoints/error.h"
#include "checkpoints/read/layer_tensors.h"
#include "kernel_templates/text.h"

namespace hone::checkpoints {
namespace {

constexpr int bits = 4;
constexpr std::int64_t in_word = 32 / bits;
constexpr std::array<int, in_word> word_order{0, 2, 4, 6, 1, 3, 5, 7};

/// Codes [out, in].
std::vector<std::uint8_t> codes_of(const StoredTensor& qweight, const GroupedWeight& weight) {
    const std::vector<std::uint32_t> words = words_of(qweight);
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(weight.out * weight.in));
    for (std::int64_t first = 0; first < weight.out; first += unpacked_rows) {
        const std::int64_t last = std::min(first + unpacked_rows, weight.out);
        for (std::int64_t column = 0; column < weight.in; ++column) {
            for (std::int64_t row = first; row < last; row += in_word) {
                std::uint32_t word = words[static_cast<std::size_t>((column * weight.out + row) / in_word)];
                for (const int offset : word_order) {
                    codes[static_cast<std::size_t>((row + offset) * weight.in + column)] =
                        static_cast<std::uint8_t>(word & 15U);
                    word >>= bits;
                }
            }
        }
    }
    return codes;
}

}  // namespace

AwqConfig awq_config(const QuantizationConfig& config) {
    config.require_method("awq");
    if (config.integer({"bits", "w_bit"}) != bits)
        config.refuse(config.find("bits") != nullptr ? "bits" : "w_bit", "4");
    if (lower_case(config.text({"version"}).value_or("gemm")) != "gemm") config.refuse("version", "gemm");
    return {.group = group_of(config, {"group_size", "q_group_size"}),
            .zero_point = config.boolean("zero_point").value_or(true)};
}

GroupedWeight read_awq(const Checkpoint& checkpoint, const std::string& layer, const AwqConfig& config) {
    const StoredTensor& qweight = checkpoint.at(layer + ".qweight");
    require_type(qweight, StoredType::i32);
    require_matrix(qweight);
    GroupedWeight weight{.bits = bits,
                         .out = static_cast<std::int64_t>(qweight.shape[1]) * in_word,
                         .in = static_cast<std::int64_t>(qweight.shape[0]),
                         .group = config.group};
    const std::int64_t groups = groups_in(qweight, weight.in, weight.group);
    weight.scales = group_scales(checkpoint.at(layer + ".scales"), groups, weight.out);
    const std::string qzeros = layer + ".qzeros";
    if (config.zero_point || checkpoint.find(qzeros) != nullptr) {
        weight.zeros = group_zeros(checkpoint.at(qzeros), groups, weight.out, word_order);
    } else {
        weight.zeros.assign(weight.scales.size(), 1U << (bits - 1));
    }
    weight.codes = codes_of(qweight, weight);
    return weight;
}

}  // namespace hone::checkpoints
