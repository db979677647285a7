// Folders of small models whose linear layers have codes, as GPTQ, AWQ and FP8 checkpoints have them, written
// by hand, and the values that the codes mean.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "hone/quantize.h"
#include "tests/checkpoints/checkpoint_files.h"
#include "tests/support/scratch.h"

namespace hone::test {

struct CodedSizes {
    std::size_t hidden = 128;
    std::size_t between = 256;
    std::size_t heads = 4;
    std::size_t kv_heads = 2;
    std::size_t head_dim = 32;
    std::size_t layers = 2;
    std::size_t vocabulary = 96;
};

class CodedFolder {
  public:
    explicit CodedFolder(const CodedSizes& of = {}, const std::string& model_type = "llama")
        : sizes(of), config{{"model_type", model_type},           {"hidden_size", of.hidden},
                            {"intermediate_size", of.between},    {"num_attention_heads", of.heads},
                            {"num_key_value_heads", of.kv_heads}, {"head_dim", of.head_dim},
                            {"num_hidden_layers", of.layers},     {"vocab_size", of.vocabulary},
                            {"max_position_embeddings", 512},     {"torch_dtype", "float16"}} {
        numbers("model.embed_tokens", of.vocabulary, of.hidden);
        numbers("lm_head", of.vocabulary, of.hidden);
        norm("model.norm");
        for (std::size_t i = 0; i < of.layers; ++i) {
            norm(layer(i, "input_layernorm"));
            norm(layer(i, "post_attention_layernorm"));
        }
    }

    [[nodiscard]] static std::string layer(std::size_t number, const std::string& name) {
        return "model.layers." + std::to_string(number) + '.' + name;
    }
    /// [out, in] of each linear layer, by its name.
    [[nodiscard]] std::map<std::string, std::pair<std::size_t, std::size_t>> linear_layers() const {
        std::map<std::string, std::pair<std::size_t, std::size_t>> all;
        const std::size_t q = sizes.heads * sizes.head_dim;
        const std::size_t kv = sizes.kv_heads * sizes.head_dim;
        const bool is_fused = config["model_type"] == "phi3";
        for (std::size_t i = 0; i < sizes.layers; ++i) {
            if (is_fused) {
                all[layer(i, "self_attn.qkv_proj")] = {q + 2 * kv, sizes.hidden};
                all[layer(i, "mlp.gate_up_proj")] = {2 * sizes.between, sizes.hidden};
            } else {
                all[layer(i, "self_attn.q_proj")] = {q, sizes.hidden};
                all[layer(i, "self_attn.k_proj")] = {kv, sizes.hidden};
                all[layer(i, "self_attn.v_proj")] = {kv, sizes.hidden};
                all[layer(i, "mlp.gate_proj")] = {sizes.between, sizes.hidden};
                all[layer(i, "mlp.up_proj")] = {sizes.between, sizes.hidden};
            }
            all[layer(i, "self_attn.o_proj")] = {sizes.hidden, q};
            all[layer(i, "mlp.down_proj")] = {sizes.hidden, sizes.between};
        }
        return all;
    }
    template <class Write>
    CodedFolder& all_layers(const Write& write) {
        for (const auto& [name, extents] : linear_layers()) write(name, extents.first, extents.second);
        return *this;
    }

    void numbers(const std::string& name, std::size_t rows, std::size_t columns) {
        std::vector<double> drawn;
        for (std::size_t i = 0; i < rows * columns; ++i)
            drawn.push_back(static_cast<double>(random_() % 1024) / 512 - 1);
        tensors.set_halves(name + ".weight", {rows, columns}, drawn);
        values[name] = std::vector<float>(drawn.begin(), drawn.end());
    }
    void norm(const std::string& name) {
        tensors.set_halves(name + ".weight", {sizes.hidden}, std::vector<double>(sizes.hidden, 1));
    }

    /// `group` columns share a scale and a zero point; of 8 bits a row does, and the zero point is the
    /// middle.
    void gptq(const std::string& name, std::size_t out, std::size_t in, int bits = 4,
              std::size_t group = 32) {
        const std::size_t in_word = 32U / static_cast<unsigned>(bits);
        const Coded coded(*this, name, out, in, (1U << bits) - 1, group, bits == 8);
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < in_word; ++i) order.push_back(i);
        Matrix zeros = coded.zeros;
        for (std::uint32_t& zero : zeros.values) --zero;
        tensors.set(name + ".qweight", {in / in_word, out}, packed_along_columns(coded.codes, in_word));
        tensors.set(name + ".qzeros", {in / group, out / in_word}, packed_along_rows(zeros, order));
        tensors.set_halves(name + ".scales", {in / group, out}, coded.scales);
    }
    void awq(const std::string& name, std::size_t out, std::size_t in, std::size_t group = 32) {
        const std::vector<std::size_t> order{0, 2, 4, 6, 1, 3, 5, 7};
        const Coded coded(*this, name, out, in, 15, group, false);
        tensors.set(name + ".qweight", {in, out / 8}, packed_along_rows(coded.codes, order));
        tensors.set(name + ".qzeros", {in / group, out / 8}, packed_along_rows(coded.zeros, order));
        tensors.set_halves(name + ".scales", {in / group, out}, coded.scales);
    }
    /// Rows and columns that share a scale: 128 of both, or all of them, or 1 row and all columns.
    void fp8(const std::string& name, std::size_t out, std::size_t in, std::size_t rows,
             std::size_t columns) {
        Bytes codes;
        std::vector<float> scales;
        const std::size_t across = (in + columns - 1) / columns;
        for (std::size_t i = 0; i < (out + rows - 1) / rows * across; ++i)
            scales.push_back(static_cast<float>(1 + random_() % 999) / 1024);
        std::vector<float>& meant = values[name] = {};
        for (std::size_t i = 0; i < out * in; ++i) {
            const auto code = static_cast<std::uint8_t>(random_() % 127 + (random_() % 2 == 0 ? 128 : 0));
            codes.push_back(static_cast<std::byte>(code));
            meant.push_back(decode_e4m3(code) * scales[i / in / rows * across + i % in / columns]);
        }
        tensors[name + ".weight"] = {checkpoints::StoredType::f8_e4m3, {out, in}, codes};
        if (config["quantization_config"].contains("weight_block_size")) {
            tensors.set_floats(name + ".weight_scale_inv", {(out + 127) / 128, across}, scales);
        } else {
            tensors.set_floats(name + ".weight_scale", {scales.size()}, scales);
        }
    }

    /// Writes config.json and the tensors.
    std::filesystem::path write() const {
        tensors.write(scratch_->path("model.safetensors"));
        write_text(scratch_->path("config.json"), config.dump());
        return scratch_->path("");
    }
    [[nodiscard]] std::filesystem::path beside(const std::string& name) const { return scratch_->path(name); }

    CodedSizes sizes;
    nlohmann::json config;
    TensorFile tensors;
    std::map<std::string, std::vector<float>> values;  ///< [out, in] of a linear layer, by its name

  private:
    /// Codes and zero points as checkpoints have them, column by column.
    struct Coded {
        Matrix codes;                ///< [in, out]
        Matrix zeros;                ///< [groups, out]
        std::vector<double> scales;  ///< [groups, out]

        Coded(CodedFolder& folder, const std::string& name, std::size_t out, std::size_t in,
              std::uint32_t most, std::size_t group, bool is_symmetric)
            : codes(random_matrix(in, out, 0, most, folder.random_)),
              zeros(random_matrix(in / group, out, is_symmetric ? (most + 1) / 2 : 1,
                                  is_symmetric ? (most + 1) / 2 : most, folder.random_)) {
            for (std::size_t i = 0; i < in / group * out; ++i)
                scales.push_back(static_cast<double>(1 + folder.random_() % 999) / 1024);
            std::vector<float>& meant = folder.values[name] = {};
            for (std::size_t row = 0; row < out; ++row) {
                for (std::size_t column = 0; column < in; ++column) {
                    const double steps =
                        static_cast<double>(codes.at(column, row)) - zeros.at(column / group, row);
                    meant.push_back(static_cast<float>(steps * scales[column / group * out + row]));
                }
            }
        }
    };

    std::mt19937 random_{20};
    std::shared_ptr<Scratch> scratch_ = std::make_shared<Scratch>();
};

}  // namespace hone::test
