#include "tests/cli/made_checkpoints.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "hone/quantize.h"

namespace hone::test {
namespace {

namespace fs = std::filesystem;
using checkpoints::StoredType;

Matrix transposed(const Matrix& matrix) {
    Matrix turned(matrix.columns, matrix.rows);
    for (std::size_t row = 0; row < matrix.rows; ++row)
        for (std::size_t column = 0; column < matrix.columns; ++column)
            turned.at(column, row) = matrix.at(row, column);
    return turned;
}

/// Codes [out, in], zero points and scales [out, groups], in no checkpoint's form.
struct Coded {
    Matrix codes;
    Matrix zeros;
    std::vector<double> scales;
    std::vector<std::uint32_t> group_of_column;

    explicit Coded(const CodedOptions& options)
        : codes(coded_out, coded_in), zeros(coded_out, coded_in / options.group) {
        std::mt19937 random(7);
        const std::uint32_t most = (1U << options.bits) - 1;
        codes = random_matrix(coded_out, coded_in, 0, most, random);
        const std::uint32_t middle = 1U << (options.bits - 1);
        zeros = random_matrix(coded_out, zeros.columns, options.symmetric ? middle : 1,
                              options.symmetric ? middle : most, random);
        for (std::size_t i = 0; i < zeros.values.size(); ++i)  // multiples of 1 / 1024: numbers of fp16
            scales.push_back(static_cast<double>(i % 999 + 1) / 1024);
        for (std::size_t column = 0; column < coded_in; ++column)
            group_of_column.push_back(static_cast<std::uint32_t>(column / options.group));
        if (options.shuffled) std::ranges::shuffle(group_of_column, random);
    }

    [[nodiscard]] std::vector<float> values() const {
        std::vector<float> values;
        for (std::size_t row = 0; row < codes.rows; ++row) {
            for (std::size_t column = 0; column < codes.columns; ++column) {
                const std::size_t group = group_of_column[column];
                const double steps = static_cast<double>(codes.at(row, column)) - zeros.at(row, group);
                values.push_back(static_cast<float>(steps * scales[row * zeros.columns + group]));
            }
        }
        return values;
    }

    void set_scales(TensorFile& file) const {
        std::vector<double> by_group;
        for (std::size_t g = 0; g < zeros.columns; ++g)
            for (std::size_t row = 0; row < codes.rows; ++row)
                by_group.push_back(scales[row * zeros.columns + g]);
        file.set_halves("l.scales", {zeros.columns, codes.rows}, by_group);
    }
};

std::vector<std::uint8_t> bytes_of_tensor(const checkpoints::StoredTensor* tensor) {
    std::vector<std::uint8_t> bytes(tensor == nullptr ? 0 : tensor->size_bytes);
    if (tensor != nullptr) tensor->read_at(0, std::as_writable_bytes(std::span(bytes)));
    return bytes;
}

/// Column c of `values` [out, in] goes to column order[c].
std::vector<float> in_order_of_x(const std::vector<float>& values, const std::vector<std::int32_t>& order) {
    std::vector<float> natural(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t column = i % order.size();
        natural[i - column + static_cast<std::size_t>(order[column])] = values[i];
    }
    return natural;
}

}  // namespace

TensorFile::Entry bf16_matrix(std::uint64_t rows, std::uint64_t columns, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::vector<std::uint16_t> bits;
    for (std::uint64_t i = 0; i < rows * columns; ++i)
        bits.push_back(
            static_cast<std::uint16_t>(encoded(rounded(normal(random), bf16_format), bf16_format)));
    return {StoredType::bf16, {rows, columns}, bytes_of_numbers(bits)};
}

std::vector<float> bf16_values(const TensorFile::Entry& entry) {
    std::vector<float> values(entry.bytes.size() / 2);
    for (std::size_t i = 0; i < values.size(); ++i) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, entry.bytes.data() + i * 2, 2);
        values[i] = static_cast<float>(decoded(bits, bf16_format));
    }
    return values;
}

TensorFile small_model() {
    TensorFile file;
    file["model.embed_tokens.weight"] = bf16_matrix(32, 128, 1);
    file["model.layers.0.norm.weight"] = bf16_matrix(1, 128, 2);
    file["model.layers.0.norm.weight"].shape = {128};
    file["model.layers.0.moe.gate.weight"] = bf16_matrix(4, 128, 3);
    file["model.layers.0.a.weight"] = bf16_matrix(96, 128, 4);
    file["model.layers.0.a.bias"] = bf16_matrix(1, 96, 5);
    file["model.layers.0.a.bias"].shape = {96};
    file["model.layers.0.b.weight"] = bf16_matrix(96, 128, 6);
    file["lm_head.weight"] = bf16_matrix(32, 128, 7);
    return file;
}

CodedLayer gptq_layer(const CodedOptions& options) {
    const Coded coded(options);
    const std::size_t in_word = 32U / static_cast<unsigned>(options.bits);
    Matrix zeros = transposed(coded.zeros);
    for (std::uint32_t& zero : zeros.values) zero -= options.zeros_less_one ? 1 : 0;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < in_word; ++i) order.push_back(i);
    CodedLayer layer{.tensors = {}, .values = coded.values()};
    layer.tensors.set("l.qweight", {coded_in / in_word, coded_out},
                      packed_along_columns(transposed(coded.codes), in_word));
    layer.tensors.set("l.qzeros", {zeros.rows, coded_out / in_word}, packed_along_rows(zeros, order));
    coded.set_scales(layer.tensors);
    if (options.shuffled) layer.tensors.set("l.g_idx", {coded_in}, coded.group_of_column);
    return layer;
}

CodedLayer awq_layer(const CodedOptions& options) {
    const std::vector<std::size_t> order{0, 2, 4, 6, 1, 3, 5, 7};
    const Coded coded(options);
    CodedLayer layer{.tensors = {}, .values = coded.values()};
    layer.tensors.set("l.qweight", {coded_in, coded_out / 8},
                      packed_along_rows(transposed(coded.codes), order));
    layer.tensors.set("l.qzeros", {coded.zeros.columns, coded_out / 8},
                      packed_along_rows(transposed(coded.zeros), order));
    coded.set_scales(layer.tensors);
    return layer;
}

void write_checkpoint(const fs::path& folder, const TensorFile& tensors, const nlohmann::json& config) {
    fs::create_directories(folder);
    tensors.write(folder / "model.safetensors");
    if (!config.is_null()) write_text(folder / "config.json", config.dump());
}

void write_runnable_model(const fs::path& folder) {
    constexpr std::uint64_t hidden = 128;
    constexpr std::uint64_t between = 256;
    constexpr std::uint64_t vocabulary = 422;
    TensorFile tensors;
    tensors["model.embed_tokens.weight"] = bf16_matrix(vocabulary, hidden, 1);
    tensors["lm_head.weight"] = bf16_matrix(vocabulary, hidden, 2);
    const auto norm = [&](const std::string& name) {
        tensors[name] = bf16_matrix(1, hidden, 3);
        tensors[name].shape = {hidden};
    };
    norm("model.norm.weight");
    for (unsigned layer = 0; layer < 2; ++layer) {
        const std::string at = "model.layers." + std::to_string(layer) + '.';
        norm(at + "input_layernorm.weight");
        norm(at + "post_attention_layernorm.weight");
        tensors[at + "self_attn.q_proj.weight"] = bf16_matrix(hidden, hidden, 4 + layer);
        tensors[at + "self_attn.k_proj.weight"] = bf16_matrix(hidden / 2, hidden, 6 + layer);
        tensors[at + "self_attn.v_proj.weight"] = bf16_matrix(hidden / 2, hidden, 8 + layer);
        tensors[at + "self_attn.o_proj.weight"] = bf16_matrix(hidden, hidden, 10 + layer);
        tensors[at + "mlp.gate_proj.weight"] = bf16_matrix(between, hidden, 12 + layer);
        tensors[at + "mlp.up_proj.weight"] = bf16_matrix(between, hidden, 14 + layer);
        tensors[at + "mlp.down_proj.weight"] = bf16_matrix(hidden, between, 16 + layer);
    }
    write_checkpoint(folder, tensors,
                     {{"model_type", "llama"},
                      {"hidden_size", hidden},
                      {"intermediate_size", between},
                      {"num_attention_heads", 4},
                      {"num_key_value_heads", 2},
                      {"num_hidden_layers", 2},
                      {"vocab_size", vocabulary},
                      {"max_position_embeddings", 1024},
                      {"rms_norm_eps", 1e-5},
                      {"torch_dtype", "bfloat16"},
                      {"eos_token_id", 421}});
    fs::copy_file(fs::path(HONE_SOURCE_DIR) / "tests/decoder/data/llama3/tokenizer.json",
                  folder / "tokenizer.json");
}

std::string all_weights_have_codes() {
    const std::string rule = "launch:match=kernel=quantize_weights_clear:write=4:value=0x7fffffff7fffffff";
    return rule + ';' + rule + ":offset=8";
}

nlohmann::json packing_of(const fs::path& folder) {
    std::ifstream stream(folder / "config.json");
    return nlohmann::json::parse(stream)["quantization_config"];
}

std::vector<float> packed_values(const fs::path& folder, const std::string& layer) {
    const nlohmann::json packing = packing_of(folder);
    const checkpoints::Checkpoint checkpoint = checkpoints::Checkpoint::open(folder);
    const std::vector<std::string> names{"w4a16", "w8a16", "w8a8", "fp8"};  // as QuantFormat has them
    const auto format = std::find(names.begin(), names.end(), packing["format"]) - names.begin();
    const checkpoints::StoredTensor& scales = checkpoint.at(layer + ".scales");
    const PackedShape shape{
        .format = static_cast<QuantFormat>(format),
        .out = packing["layers"][layer][0],
        .in = packing["layers"][layer][1],
        .group = packing["group"],
        .zeros = packing["zeros"],
        .one_scale = format >= 2 && packing["group"] == 0 && scales.shape == std::vector<std::uint64_t>{1},
        .scale_dtype = packing["dtype"] == "fp16" ? Dtype::fp16 : Dtype::bf16};
    std::vector<float> values(static_cast<std::size_t>(shape.out * shape.in));
    const std::vector<std::uint8_t> codes = bytes_of_tensor(checkpoint.find(layer + ".codes"));
    const std::vector<std::uint8_t> scale_bytes = bytes_of_tensor(&scales);
    const std::vector<std::uint8_t> zeros = bytes_of_tensor(checkpoint.find(layer + ".zeros"));
    dequantize(shape, {codes, scale_bytes, zeros}, values);
    if (!packing["input_order"]) return values;
    const checkpoints::StoredTensor& order = checkpoint.at(layer + ".input_order");
    REQUIRE(order.type == StoredType::i32);
    REQUIRE(order.shape == std::vector<std::uint64_t>{static_cast<std::uint64_t>(shape.in)});
    std::vector<std::int32_t> columns(static_cast<std::size_t>(shape.in));
    order.read_at(0, std::as_writable_bytes(std::span(columns)));
    return in_order_of_x(values, columns);
}

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
    REQUIRE(a.size() == b.size());
    double errors = 0;
    double squares = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        errors += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
        squares += double{a[i]} * a[i];
    }
    return std::sqrt(errors / squares);
}

}  // namespace hone::test
