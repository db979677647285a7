#include "checkpoints/read/awq.h"

#include <doctest/doctest.h>

#include "tests/checkpoints/checkpoint_files.h"
#include "tests/support/scratch.h"

using namespace hone::checkpoints;
using namespace hone::test;

namespace {

const std::vector<std::size_t> word_order{0, 2, 4, 6, 1, 3, 5, 7};

struct Layer {
    std::size_t group = 32;
    Matrix codes;                ///< [in, out]
    Matrix zeros;                ///< [groups, out]
    std::vector<double> scales;  ///< [groups, out]

    [[nodiscard]] AwqConfig config() const {
        return {.group = group == codes.rows ? 0 : static_cast<std::int64_t>(group)};
    }
};

Layer random_layer(std::size_t out, std::size_t in, std::size_t group, std::mt19937& random) {
    Layer layer{.group = group,
                .codes = random_matrix(in, out, 0, 15, random),
                .zeros = random_matrix(in / group, out, 0, 15, random)};
    for (std::size_t i = 0; i < in / group * out; ++i)
        layer.scales.push_back(static_cast<double>(i % 999 + 1) / 64);
    return layer;
}

TensorFile packed(const Layer& layer) {
    const std::size_t out = layer.codes.columns;
    TensorFile file;
    file.set("l.qweight", {layer.codes.rows, out / 8}, packed_along_rows(layer.codes, word_order));
    file.set("l.qzeros", {layer.zeros.rows, out / 8}, packed_along_rows(layer.zeros, word_order));
    file.set_halves("l.scales", {layer.zeros.rows, out}, layer.scales);
    return file;
}

GroupedWeight read(const Scratch& scratch, const TensorFile& file, const AwqConfig& config) {
    file.write(scratch.path("model.safetensors"));
    return read_awq(Checkpoint::open(scratch.path("")), "l", config);
}

QuantizationConfig configured(nlohmann::json values) { return {std::move(values), "c.json", "awq"}; }

}  // namespace

TEST_CASE("a word worked out by hand: rows 0 to 7 stand as 0, 2, 4, 6, 1, 3, 5, 7") {
    const Scratch scratch;
    TensorFile file;
    std::vector<std::uint32_t> words(32, 0);
    words[0] = 0x75316420;   // column 0: row r has code r
    words[31] = 0x8ACE9BDF;  // column 31: row r has code 15 - r
    file.set("l.qweight", {32, 1}, words);
    file.set("l.qzeros", {1, 1}, {0x75316420});
    file.set_halves("l.scales", {1, 8}, {1, 2, 3, 4, 5, 6, 7, 8});
    const GroupedWeight weight = read(scratch, file, {.group = 32});
    CHECK(weight.out == 8);
    CHECK(weight.in == 32);
    for (std::size_t row = 0; row < 8; ++row) {
        CHECK(weight.codes[row * 32] == row);
        CHECK(weight.codes[row * 32 + 1] == 0);
        CHECK(weight.codes[row * 32 + 31] == 15 - row);
        CHECK(weight.zeros[row] == row);
        CHECK(weight.scales[row] == static_cast<float>(row + 1));
    }
}

TEST_CASE("layers of all groups are read as they were before they were packed") {
    const Scratch scratch;
    std::mt19937 random(1);
    for (const std::size_t group : {32U, 64U, 128U, 256U}) {
        const Layer layer = random_layer(136, 256, group, random);
        const GroupedWeight weight = read(scratch, packed(layer), layer.config());
        const std::size_t groups = 256 / group;
        bool same = weight.column_order.empty() && weight.groups() == static_cast<std::int64_t>(groups);
        for (std::size_t row = 0; row < 136; ++row) {
            for (std::size_t column = 0; column < 256; ++column) {
                const std::size_t g = column / group;
                same = same && weight.codes[row * 256 + column] == layer.codes.at(column, row) &&
                       weight.zeros[row * groups + g] == layer.zeros.at(g, row) &&
                       static_cast<double>(weight.scales[row * groups + g]) ==
                           rounded(layer.scales[g * 136 + row], fp16_format);
            }
        }
        CHECK(same);
    }
}

TEST_CASE("a layer without zero points is symmetric where the configuration allows it") {
    const Scratch scratch;
    std::mt19937 random(2);
    const Layer layer = random_layer(16, 64, 32, random);
    TensorFile file = packed(layer);
    CHECK_FALSE(read(scratch, file, {.group = 32, .zero_point = false}).is_symmetric());
    file.erase("l.qzeros");
    CHECK(read(scratch, file, {.group = 32, .zero_point = false}).is_symmetric());
    CHECK(contains(refusal([&] { return read(scratch, file, {.group = 32}); }), "no tensor 'l.qzeros'"));
}

TEST_CASE("faults of a layer are refused by tensor, value and what is allowed") {
    const Scratch scratch;
    std::mt19937 random(3);
    const Layer layer = random_layer(16, 64, 32, random);
    const auto refused = [&](const auto& change) {
        TensorFile file = packed(layer);
        change(file);
        return refusal([&] { return read(scratch, file, layer.config()); });
    };
    CHECK(refused([](TensorFile&) {}).empty());
    CHECK(contains(refused([](TensorFile& file) { file.erase("l.qweight"); }), "no tensor 'l.qweight'"));
    CHECK(contains(refused([](TensorFile& file) { file.erase("l.scales"); }), "no tensor 'l.scales'"));
    CHECK(contains(refused([](TensorFile& file) { file["l.qweight"].type = StoredType::f32; }),
                   "tensor 'l.qweight': dtype F32; allowed is I32"));
    CHECK(contains(refused([](TensorFile& file) { file["l.qzeros"].type = StoredType::f32; }),
                   "allowed is I32"));
    CHECK(contains(refused([](TensorFile& file) { file["l.qweight"].shape = {128}; }), "needed is a matrix"));
    CHECK(contains(refused([](TensorFile& file) {
                       file.set("l.qweight", {0, 2}, {});
                   }),
                   "needed is a matrix"));
    CHECK(contains(refused([](TensorFile& file) {
                       file["l.qweight"].shape = {32, 4};
                   }),
                   "needed is [1, 32]"));
    CHECK(contains(refused([](TensorFile& file) {
                       file["l.qweight"].shape = {16, 8};
                   }),
                   "16 columns are not a multiple of group_size 32"));
    CHECK(contains(refused([](TensorFile& file) {
                       file["l.qzeros"].shape = {1, 4};
                   }),
                   "tensor 'l.qzeros': shape [1, 4]; needed is [2, 2]"));
    CHECK(contains(refused([](TensorFile& file) { file["l.scales"].shape = {32}; }), "needed is [2, 16]"));
    CHECK(contains(refused([](TensorFile& file) {
                       file["l.scales"].bytes[3] = std::byte{0x7C};
                       file["l.scales"].bytes[2] = std::byte{0};
                   }),
                   "scale 1 of 32 is inf; allowed are finite numbers but 0"));
}

TEST_CASE("the configuration's values are read in both spellings, and others refused") {
    const AwqConfig old = awq_config(configured({{"w_bit", 4}, {"q_group_size", 64}, {"version", "GEMM"}}));
    CHECK(old.group == 64);
    CHECK(old.zero_point);
    const AwqConfig now = awq_config(configured({{"quant_method", "awq"},
                                                 {"bits", 4},
                                                 {"group_size", -1},
                                                 {"version", "gemm"},
                                                 {"zero_point", false}}));
    CHECK(now.group == 0);
    CHECK_FALSE(now.zero_point);
    const auto refused = [](const char* key, const nlohmann::json& value) {
        nlohmann::json values{{"w_bit", 4}, {"q_group_size", 128}};
        values[key] = value;
        return refusal([&] { return awq_config(configured(values)); });
    };
    CHECK(refused("version", "gemm").empty());
    CHECK(contains(refused("version", "gemv"), "version is \"gemv\"; allowed: gemm"));
    CHECK(contains(refused("w_bit", 8), "w_bit is 8; allowed: 4"));
    CHECK(contains(refused("bits", 8), "bits is 8; allowed: 4"));
    CHECK(contains(refused("q_group_size", 16), "q_group_size is 16; allowed: -1"));
    CHECK(contains(refused("quant_method", "gptq"), "allowed: awq"));
}
