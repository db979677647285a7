#include "checkpoints/read/gptq.h"

#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>

#include "checkpoints/read/layer_tensors.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/support/scratch.h"

using namespace hone::checkpoints;
using namespace hone::test;

namespace {

/// A layer as it was before it was packed.
struct Layer {
    int bits = 4;
    std::size_t group = 32;
    bool zeros_less_one = true;
    Matrix codes;                ///< [out, in]
    Matrix zeros;                ///< [out, groups]
    std::vector<double> scales;  ///< [groups, out]
    std::vector<std::uint32_t> group_of_column;

    [[nodiscard]] GptqConfig config() const {
        return {.bits = bits,
                .group = group == codes.columns ? 0 : static_cast<std::int64_t>(group),
                .zeros_less_one = zeros_less_one};
    }
};

Layer random_layer(int bits, std::size_t out, std::size_t in, std::size_t group, std::mt19937& random) {
    const std::uint32_t most = (1U << bits) - 1;
    const std::size_t groups = in / group;
    Layer layer{.bits = bits,
                .group = group,
                .codes = random_matrix(out, in, 0, most, random),
                .zeros = random_matrix(out, groups, 1, most, random)};
    for (std::size_t i = 0; i < groups * out; ++i)
        layer.scales.push_back(static_cast<double>(i % 999 + 1) / 1024);
    for (std::size_t i = 0; i < in; ++i)
        layer.group_of_column.push_back(static_cast<std::uint32_t>(i / group));
    return layer;
}

TensorFile packed(const Layer& layer) {
    const std::size_t in_word = 32U / static_cast<unsigned>(layer.bits);
    const std::size_t out = layer.codes.rows;
    const std::size_t in = layer.codes.columns;
    const std::size_t groups = layer.zeros.columns;
    Matrix by_column(in, out);
    for (std::size_t row = 0; row < out; ++row)
        for (std::size_t column = 0; column < in; ++column)
            by_column.at(column, row) = layer.codes.at(row, column);
    Matrix stored_zeros(groups, out);
    for (std::size_t row = 0; row < out; ++row)
        for (std::size_t g = 0; g < groups; ++g)
            stored_zeros.at(g, row) = layer.zeros.at(row, g) - (layer.zeros_less_one ? 1 : 0);
    std::vector<std::size_t> natural(in_word);
    std::iota(natural.begin(), natural.end(), 0U);
    TensorFile file;
    file.set("l.qweight", {in / in_word, out}, packed_along_columns(by_column, in_word));
    file.set("l.qzeros", {groups, out / in_word}, packed_along_rows(stored_zeros, natural));
    file.set_halves("l.scales", {groups, out}, layer.scales);
    file.set("l.g_idx", {in}, layer.group_of_column);
    return file;
}

GroupedWeight read(const Scratch& scratch, const TensorFile& file, const GptqConfig& config) {
    file.write(scratch.path("model.safetensors"));
    return read_gptq(Checkpoint::open(scratch.path("")), "l", config);
}

/// Every element's code, zero point and scale are the layer's, wherever its column stands now.
bool is_same(const GroupedWeight& weight, const Layer& layer) {
    const std::size_t out = layer.codes.rows;
    const std::size_t in = layer.codes.columns;
    const std::size_t groups = layer.zeros.columns;
    for (std::size_t row = 0; row < out; ++row) {
        for (std::size_t c = 0; c < in; ++c) {
            const std::size_t column =
                weight.column_order.empty() ? c : static_cast<std::size_t>(weight.column_order[c]);
            const std::size_t now = row * groups + c / layer.group;
            const std::size_t before = layer.group_of_column[column];
            if (weight.codes[row * in + c] != layer.codes.at(row, column)) return false;
            if (weight.zeros[now] != layer.zeros.at(row, before)) return false;
            if (static_cast<double>(weight.scales[now]) !=
                rounded(layer.scales[before * out + row], fp16_format))
                return false;
        }
    }
    return true;
}

std::string refusal_of(const Scratch& scratch, const TensorFile& file, const GptqConfig& config) {
    return refusal([&] { return read(scratch, file, config); });
}

QuantizationConfig configured(nlohmann::json values) { return {std::move(values), "c.json", "gptq"}; }

/// 8 rows, 32 columns, one group: every number of it is worked out by hand.
TensorFile by_hand(std::uint32_t zeros_word) {
    TensorFile file;
    std::vector<std::uint32_t> words;
    for (std::uint32_t word = 0; word < 4; ++word) {
        // Row r, column 8 * word + i has code (i + r) % 16: row 0 reads 0, 1, ... 7 from the low end up.
        for (const std::uint32_t row : {0x76543210U, 0x87654321U, 0x98765432U, 0xA9876543U, 0xBA987654U,
                                        0xCBA98765U, 0xDCBA9876U, 0xEDCBA987U})
            words.push_back(row);
    }
    file.set("l.qweight", {4, 8}, words);
    file.set("l.qzeros", {1, 1}, {zeros_word});
    file.set_halves("l.scales", {1, 8}, {0.5, -0.25, 1, 2, 4, 8, 16, 0x1p-24});
    return file;
}

}  // namespace

TEST_CASE("words worked out by hand are read: columns in a word of codes, rows in a word of zero points") {
    const Scratch scratch;
    for (const bool less_one : {true, false}) {
        const GroupedWeight weight = read(scratch, by_hand(less_one ? 0x76543210U : 0x87654321U),
                                          {.bits = 4, .group = 32, .zeros_less_one = less_one});
        CHECK(weight.out == 8);
        CHECK(weight.in == 32);
        CHECK(weight.groups() == 1);
        for (std::size_t row = 0; row < 8; ++row) {
            CHECK(weight.zeros[row] == row + 1);
            for (std::size_t column = 0; column < 32; ++column)
                CHECK(weight.codes[row * 32 + column] == (column % 8 + row) % 16);
        }
        CHECK(weight.scales == std::vector<float>{0.5F, -0.25F, 1, 2, 4, 8, 16, 0x1p-24F});
        CHECK(weight.column_order.empty());
    }
}

TEST_CASE("layers of all bits, groups and both formats are read as they were before they were packed") {
    const Scratch scratch;
    std::mt19937 random(1);
    for (const int bits : {4, 8}) {
        for (const std::size_t group : {32U, 64U, 128U, 256U}) {
            for (const bool less_one : {true, false}) {
                Layer layer = random_layer(bits, 72, 256, group, random);
                layer.zeros_less_one = less_one;
                if (!less_one) layer.zeros.at(3, 0) = 0;
                const GroupedWeight weight = read(scratch, packed(layer), layer.config());
                CHECK(is_same(weight, layer));
                CHECK(weight.column_order.empty());
                CHECK(weight.groups() == static_cast<std::int64_t>(256 / group));
            }
        }
    }
}

TEST_CASE("activation order: columns are sorted by group, and the permutation says how x follows") {
    const Scratch scratch;
    std::mt19937 random(2);
    for (const int bits : {4, 8}) {
        Layer layer = random_layer(bits, 40, 256, 64, random);
        std::ranges::shuffle(layer.group_of_column, random);
        GptqConfig config = layer.config();
        config.desc_act = true;
        const GroupedWeight weight = read(scratch, packed(layer), config);
        CHECK(is_same(weight, layer));
        std::vector<std::int32_t> sorted = weight.column_order;
        std::ranges::sort(sorted);
        for (std::size_t i = 0; i < 256; ++i) CHECK(sorted[i] == static_cast<std::int32_t>(i));
    }
}

TEST_CASE("a g_idx that changes nothing leaves no permutation") {
    const Scratch scratch;
    std::mt19937 random(3);
    Layer layer = random_layer(4, 16, 128, 32, random);
    TensorFile file = packed(layer);
    GptqConfig config = layer.config();
    file.erase("l.g_idx");
    const GroupedWeight without = read(scratch, file, config);
    CHECK(is_same(without, layer));
    CHECK(without.column_order.empty());
    file.set("l.g_idx", {128}, std::vector<std::uint32_t>(128));
    CHECK(is_same(read(scratch, file, config), layer));
    Layer whole = random_layer(4, 16, 128, 128, random);
    config = whole.config();
    config.desc_act = true;
    CHECK(read(scratch, packed(whole), config).column_order.empty());
}

TEST_CASE("faults of a layer are refused before anything is used, by tensor, value and what is allowed") {
    const Scratch scratch;
    std::mt19937 random(4);
    const Layer layer = random_layer(4, 16, 128, 32, random);
    const auto refused = [&](const auto& change, bool desc_act = false) {
        TensorFile file = packed(layer);
        change(file);
        GptqConfig config = layer.config();
        config.desc_act = desc_act;
        return refusal_of(scratch, file, config);
    };
    CHECK(refused([](TensorFile&) {}).empty());
    for (const char* name : {"l.qweight", "l.qzeros", "l.scales"}) {
        CHECK(contains(refused([&](TensorFile& file) { file.erase(name); }),
                       std::string("no tensor '") + name));
    }
    CHECK(contains(refused([](TensorFile& file) { file["l.qweight"].type = StoredType::u32; }),
                   "tensor 'l.qweight': dtype U32; allowed is I32"));
    CHECK(contains(refused([](TensorFile& file) { file["l.qzeros"].type = StoredType::f32; }),
                   "allowed is I32"));
    CHECK(contains(refused([](TensorFile& file) { file["l.g_idx"].type = StoredType::f32; }),
                   "allowed is I32"));
    CHECK(contains(refused([](TensorFile& file) { file["l.scales"].type = StoredType::i16; }),
                   "allowed are F32, F16 and BF16"));
    CHECK(contains(refused([](TensorFile& file) { file["l.qweight"].shape = {256}; }), "needed is a matrix"));
    CHECK(contains(refused([](TensorFile& file) {
                       file.set("l.qweight", {0, 16}, {});
                   }),
                   "needed is a matrix"));
    CHECK(contains(refused([](TensorFile& file) {
                       file.set("l.qweight", {16, 0}, {});
                   }),
                   "needed is a matrix"));
    CHECK(contains(refused([](TensorFile& file) {
                       file["l.qzeros"].shape = {2, 4};
                   }),
                   "tensor 'l.qzeros': shape [2, 4]; needed is [4, 2]"));
    CHECK(contains(refused([](TensorFile& file) { file["l.scales"].shape = {16, 4}; }), "needed is [4, 16]"));
    CHECK(contains(refused([](TensorFile& file) { file["l.g_idx"].shape = {64, 2}; }), "needed is [128]"));
    CHECK(contains(refused([](TensorFile& file) {
                       file["l.qweight"].shape = {32, 8};
                   }),
                   "shape [128]; needed is [256]"));
    CHECK(contains(refused([](TensorFile& file) {
                       file.set("l.qweight", {1, 16}, std::vector<std::uint32_t>(16));
                   }),
                   "8 columns are not a multiple of group_size 32"));
    CHECK(contains(refused([](TensorFile& file) {
                       file.set("l.qweight", {16, 15}, std::vector<std::uint32_t>(240));
                   }),
                   "15 rows of the layer are not a multiple of the 8"));
}

TEST_CASE("scales that are 0 or not finite are refused; small and negative ones are numbers") {
    const Scratch scratch;
    std::mt19937 random(5);
    const Layer layer = random_layer(4, 8, 32, 32, random);
    const auto with_scale = [&](std::uint16_t half) {
        TensorFile file = packed(layer);
        std::memcpy(file["l.scales"].bytes.data() + 10, &half, 2);
        return refusal_of(scratch, file, layer.config());
    };
    for (const std::uint16_t half :
         std::initializer_list<std::uint16_t>{0x0000, 0x8000, 0x7C00, 0xFC00, 0x7E00, 0xFFFF, 0x7C01}) {
        CAPTURE(half);
        CHECK(contains(with_scale(half), "tensor 'l.scales': scale 5 of 8 is "));
    }
    for (const std::uint16_t half :
         std::initializer_list<std::uint16_t>{0x0001, 0x8001, 0x03FF, 0x7BFF, 0xBC00})
        CHECK(with_scale(half).empty());
}

TEST_CASE("groups of g_idx are in range and of one size") {
    const Scratch scratch;
    std::mt19937 random(6);
    const Layer layer = random_layer(4, 16, 128, 32, random);
    const auto with_group = [&](std::size_t column, std::uint32_t group, bool desc_act) {
        Layer changed = layer;
        changed.group_of_column[column] = group;
        GptqConfig config = layer.config();
        config.desc_act = desc_act;
        return refusal_of(scratch, packed(changed), config);
    };
    for (const bool desc_act : {true, false}) {
        CHECK(contains(with_group(7, 4, desc_act),
                       "tensor 'l.g_idx': column 7 has group 4; allowed are 0 to 3"));
        CHECK(contains(with_group(0, UINT32_MAX, desc_act), "column 0 has group -1"));
        CHECK(contains(with_group(0, 3, desc_act),
                       "g_idx gives group 0 31 columns; needed are group_size, 32"));
    }
    TensorFile file = packed(layer);
    file.set("l.g_idx", {128}, std::vector<std::uint32_t>(128));
    GptqConfig config = layer.config();
    config.desc_act = true;
    CHECK(contains(refusal_of(scratch, file, config), "group 0 128 columns"));
    file.erase("l.g_idx");
    CHECK(contains(refusal_of(scratch, file, config), "no tensor 'l.g_idx', which desc_act needs"));
}

TEST_CASE("the format gptq cannot tell a zero point 0; gptq_v2 can") {
    const Scratch scratch;
    for (const std::uint32_t word : {0xF6543210U, 0x765432F0U}) {
        CHECK(contains(refusal_of(scratch, by_hand(word), {.bits = 4, .group = 32}),
                       "zero point 0 cannot be told in the format gptq, which has it as 15"));
        CHECK(refusal_of(scratch, by_hand(word), {.bits = 4, .group = 32, .zeros_less_one = false}).empty());
    }
}

TEST_CASE("where the configuration says sym, a wrong format shows") {
    const Scratch scratch;
    const GptqConfig one{.bits = 4, .group = 32, .sym = true, .zeros_less_one = true};
    const GptqConfig two{.bits = 4, .group = 32, .sym = true, .zeros_less_one = false};
    CHECK(read(scratch, by_hand(0x77777777), one).is_symmetric());
    CHECK(read(scratch, by_hand(0x88888888), two).is_symmetric());
    CHECK(contains(refusal_of(scratch, by_hand(0x88888888), one),
                   "row 0, group 0: zero point 9; allowed is 8"));
    CHECK(contains(refusal_of(scratch, by_hand(0x77777777), two), "zero point 7; allowed is 8"));
    CHECK_FALSE(read(scratch, by_hand(0x76543210), {.bits = 4, .group = 32}).is_symmetric());
}

TEST_CASE("the configuration's values are read, and others refused with what is allowed") {
    const GptqConfig config =
        gptq_config(configured({{"bits", 8},
                                {"group_size", -1},
                                {"desc_act", true},
                                {"sym", false},
                                {"checkpoint_format", "gptq_v2"},
                                {"dynamic", {{"-:.*lm_head", nlohmann::json::object()}}}}));
    CHECK(config.bits == 8);
    CHECK(config.group == 0);
    CHECK(config.desc_act);
    CHECK(config.sym == false);
    CHECK_FALSE(config.zeros_less_one);
    const GptqConfig plain = gptq_config(configured({{"bits", 4}, {"group_size", 128}}));
    CHECK(plain.group == 128);
    CHECK(plain.zeros_less_one);
    CHECK_FALSE(plain.desc_act);
    CHECK_FALSE(plain.sym);
    const auto refused = [](const char* key, const nlohmann::json& value) {
        nlohmann::json values{{"bits", 4}, {"group_size", 128}};
        values[key] = value;
        return refusal([&] { return gptq_config(configured(values)); });
    };
    CHECK(contains(refused("quant_method", "awq"), "quant_method is \"awq\"; allowed: gptq"));
    CHECK(contains(refused("bits", 3), "c.json: bits is 3; allowed: 4 and 8"));
    CHECK(contains(refused("bits", nullptr), "bits is null; allowed: 4 and 8"));
    CHECK(contains(refused("group_size", 48), "group_size is 48; allowed: -1 (whole rows), 32, 64 and 128"));
    CHECK(contains(refused("group_size", 0), "allowed: -1"));
    CHECK(contains(refused("checkpoint_format", "marlin"), "allowed: gptq and gptq_v2"));
    CHECK(contains(refused("is_marlin_format", true), "is_marlin_format is true; allowed: false"));
    CHECK(contains(refused("dynamic", {{"+:.*up", {{"bits", 8}}}}), "dynamic"));
    CHECK(contains(refused("dynamic", 1), "dynamic is 1"));
    CHECK(contains(refusal([] { return gptq_config(configured({{"bits", 4}})); }), "group_size is missing"));
}

TEST_CASE("all numbers of 16 bits have their value") {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        const auto same = [](float value, double expected) {
            return std::isnan(expected) ? std::isnan(value)
                                        : static_cast<double>(value) == expected &&
                                              std::signbit(value) == std::signbit(expected);
        };
        REQUIRE(same(half_value(static_cast<std::uint16_t>(bits)), decoded(bits, fp16_format)));
        REQUIRE(same(bfloat_value(static_cast<std::uint16_t>(bits)), decoded(bits, bf16_format)));
    }
}
