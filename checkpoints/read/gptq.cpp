#include "checkpoints/read/gptq.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "checkpoints/error.h"
#include "checkpoints/read/layer_tensors.h"

namespace hone::checkpoints {
namespace {

constexpr std::array<int, 8> natural_order{0, 1, 2, 3, 4, 5, 6, 7};

/// Group of each column, each in range; empty where there are none, and columns stand by their groups.
std::vector<std::int32_t> group_indices(const Checkpoint& checkpoint, const std::string& layer,
                                        const GptqConfig& config, const GroupedWeight& weight) {
    const StoredTensor* tensor = checkpoint.find(layer + ".g_idx");
    if (tensor == nullptr) {
        if (!config.desc_act) return {};
        throw CheckpointError(fmt::format("{}: no tensor {}, which desc_act needs",
                                          checkpoint.path().string(), shown(layer + ".g_idx")));
    }
    require_type(*tensor, StoredType::i32);
    require_shape(*tensor, {weight.in});
    std::vector<std::int32_t> indices(static_cast<std::size_t>(weight.in));
    tensor->read_at(0, std::as_writable_bytes(std::span(indices)));
    for (std::size_t column = 0; column < indices.size(); ++column) {
        if (indices[column] >= 0 && indices[column] < weight.groups()) continue;
        throw CheckpointError(fmt::format("{}: column {} has group {}; allowed are 0 to {}", tensor->place,
                                          column, indices[column], weight.groups() - 1));
    }
    // Writers without activation order have left it at zero.
    const bool unused = !config.desc_act && std::ranges::count(indices, 0) == weight.in;
    return unused ? std::vector<std::int32_t>{} : indices;
}

/// Columns sorted by their groups; empty where they stand so.
std::vector<std::int32_t> column_order(const std::vector<std::int32_t>& indices, const GroupedWeight& weight,
                                       const std::string& layer) {
    if (indices.empty() || weight.group == 0) return {};
    std::vector<std::int64_t> columns(static_cast<std::size_t>(weight.groups()));
    for (const std::int32_t group : indices) ++columns[static_cast<std::size_t>(group)];
    for (std::size_t g = 0; g < columns.size(); ++g) {
        if (columns[g] == weight.group) continue;
        throw CheckpointError(
            fmt::format("layer {}: g_idx gives group {} {} columns; needed are group_size, {}", shown(layer),
                        g, columns[g], weight.group));
    }
    if (std::ranges::is_sorted(indices)) return {};
    std::vector<std::int32_t> order(indices.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {},
                             [&](std::int32_t column) { return indices[static_cast<std::size_t>(column)]; });
    return order;
}

/// The layer without its numbers.
GroupedWeight outlined(const Checkpoint& checkpoint, const std::string& layer, const GptqConfig& config) {
    const StoredTensor& qweight = checkpoint.at(layer + ".qweight");
    require_type(qweight, StoredType::i32);
    require_matrix(qweight);
    GroupedWeight weight{.bits = config.bits,
                         .out = static_cast<std::int64_t>(qweight.shape[1]),
                         .in = static_cast<std::int64_t>(qweight.shape[0]) * (32 / config.bits),
                         .group = config.group};
    (void)groups_in(qweight, weight.in, weight.group);  // refuses other sizes
    weight.column_order = column_order(group_indices(checkpoint, layer, config, weight), weight, layer);
    return weight;
}

/// Codes [out, in] with the columns in `weight`'s order.
std::vector<std::uint8_t> codes_of(const StoredTensor& qweight, const GroupedWeight& weight) {
    const std::int64_t in_word = 32 / weight.bits;
    const std::vector<std::uint32_t> words = words_of(qweight);
    std::vector<std::int64_t> place(static_cast<std::size_t>(weight.in));
    std::iota(place.begin(), place.end(), std::int64_t{0});
    for (std::size_t c = 0; c < weight.column_order.size(); ++c)
        place[static_cast<std::size_t>(weight.column_order[c])] = static_cast<std::int64_t>(c);
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(weight.out * weight.in));
    const std::uint32_t mask = (1U << weight.bits) - 1;
    for (std::int64_t first = 0; first < weight.out; first += unpacked_rows) {
        const std::int64_t last = std::min(first + unpacked_rows, weight.out);
        for (std::int64_t column = 0; column < weight.in; column += in_word) {
            for (std::int64_t row = first; row < last; ++row) {
                std::uint32_t word = words[static_cast<std::size_t>(column / in_word * weight.out + row)];
                for (std::int64_t i = 0; i < in_word; ++i, word >>= weight.bits) {
                    const std::int64_t at = row * weight.in + place[static_cast<std::size_t>(column + i)];
                    codes[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(word & mask);
                }
            }
        }
    }
    return codes;
}

/// "row 5, group 2"
std::string position(std::size_t index, const GroupedWeight& weight) {
    const auto groups = static_cast<std::size_t>(weight.groups());
    return fmt::format("row {}, group {}", index / groups, index % groups);
}

/// Adds the 1 that the format "gptq" has taken away. The largest number was -1, and has borrowed from the
/// number above it in its word, or not: writers differ.
void restore_zeros(GroupedWeight& weight, const StoredTensor& qzeros) {
    const auto largest = static_cast<std::uint8_t>((1U << weight.bits) - 1);
    for (std::size_t i = 0; i < weight.zeros.size(); ++i) {
        if (weight.zeros[i] == largest) {
            throw CheckpointError(fmt::format(
                "{}: {}: zero point 0 cannot be told in the format gptq, which has it as {}; allowed: a "
                "checkpoint in the format gptq_v2",
                qzeros.place, position(i, weight), largest));
        }
        ++weight.zeros[i];
    }
}

/// A wrong checkpoint_format shows here rather than in a model that answers nonsense.
void check_symmetric(const GroupedWeight& weight, const StoredTensor& qzeros) {
    const auto middle = static_cast<std::uint8_t>(1U << (weight.bits - 1));
    const auto other = std::ranges::find_if(weight.zeros, [&](std::uint8_t zero) { return zero != middle; });
    if (other == weight.zeros.end()) return;
    throw CheckpointError(fmt::format(
        "{}: {}: zero point {}; allowed is {} where the configuration says sym (is checkpoint_format right?)",
        qzeros.place, position(static_cast<std::size_t>(other - weight.zeros.begin()), weight), *other,
        middle));
}

/// Rules that give some layers other bits or groups. Those that leave layers out ("-:...") are fine.
void refuse_dynamic(const QuantizationConfig& config) {
    const nlohmann::json* rules = config.find("dynamic");
    if (rules == nullptr) return;
    const char* const allowed = "an object of rules that leave layers out, \"-:...\"";
    if (!rules->is_object()) config.refuse("dynamic", allowed);
    for (const auto& [rule, _] : rules->items()) {
        if (!rule.starts_with("-:")) config.refuse("dynamic", allowed);
    }
}

}  // namespace

GptqConfig gptq_config(const QuantizationConfig& config) {
    config.require_method("gptq");
    const std::optional<std::int64_t> bits = config.integer({"bits"});
    if (bits != 4 && bits != 8) config.refuse("bits", "4 and 8");
    const std::string format = config.text({"checkpoint_format", "format"}).value_or("gptq");
    if (format != "gptq" && format != "gptq_v2") {
        config.refuse(config.find("checkpoint_format") != nullptr ? "checkpoint_format" : "format",
                      "gptq and gptq_v2");
    }
    if (config.boolean("is_marlin_format").value_or(false)) config.refuse("is_marlin_format", "false");
    refuse_dynamic(config);
    return {.bits = static_cast<int>(*bits),
            .group = group_of(config, {"group_size"}),
            .desc_act = config.boolean("desc_act").value_or(false),
            .sym = config.boolean("sym"),
            .zeros_less_one = format == "gptq"};
}

bool is_reordered(const Checkpoint& checkpoint, const std::string& layer, const GptqConfig& config) {
    return !outlined(checkpoint, layer, config).column_order.empty();
}

GroupedWeight read_gptq(const Checkpoint& checkpoint, const std::string& layer, const GptqConfig& config) {
    GroupedWeight weight = outlined(checkpoint, layer, config);
    const StoredTensor& qweight = checkpoint.at(layer + ".qweight");
    const StoredTensor& qzeros = checkpoint.at(layer + ".qzeros");
    const int in_word = 32 / config.bits;
    require_whole_words(qweight, weight.out, in_word);
    weight.scales = group_scales(checkpoint.at(layer + ".scales"), weight.groups(), weight.out);
    weight.zeros = group_zeros(qzeros, weight.groups(), weight.out,
                               std::span(natural_order).first(static_cast<std::size_t>(in_word)));
    if (config.zeros_less_one) restore_zeros(weight, qzeros);
    if (config.sym.value_or(false)) check_symmetric(weight, qzeros);
    weight.codes = codes_of(qweight, weight);
    return weight;
}

}  // namespace hone::checkpoints
