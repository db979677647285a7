// gpt-oss on the fake GPU: experts as MXFP4 or as numbers, with biases, gate and up in turns; a router with a
// bias; attention with sinks, in launches of its own.
// Starts threads: the thread sanitizer runs this file, too.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "decoder/engine/running_model.h"
#include "tests/decoder/coded_folder.h"
#include "tests/decoder/coded_model.h"

using namespace hone;
using namespace hone::decoder;
using namespace hone::test;

namespace {

constexpr std::size_t experts = 4;
constexpr std::size_t layers = 2;
constexpr std::size_t hidden = 128;
constexpr std::size_t width = 64;
constexpr std::size_t heads = 4;

std::string in_experts(std::size_t layer, const std::string& name) {
    return CodedFolder::layer(layer, "mlp.experts." + name);
}

/// A row of the stored tensor and its bias say of which expert, half and row they are.
double mark(std::size_t expert, bool is_up, std::size_t row) {
    return static_cast<double>(expert * 128 + (is_up ? 64 : 0) + row);
}

CodedFolder oss_folder() {
    CodedFolder folder({.hidden = hidden, .between = width, .heads = heads, .layers = layers}, "gpt_oss");
    folder.config["num_local_experts"] = experts;
    folder.config["num_experts_per_tok"] = 2;
    folder.config["sliding_window"] = 16;
    const std::size_t q = heads * 32;
    const std::size_t kv = 2 * 32;
    for (std::size_t i = 0; i < layers; ++i) {
        const auto biased = [&](const char* name, std::size_t out, std::size_t in) {
            folder.numbers(CodedFolder::layer(i, name), out, in);
            folder.tensors.set_halves(CodedFolder::layer(i, name) + ".bias", {out},
                                      std::vector<double>(out, 0.25));
        };
        biased("self_attn.q_proj", q, hidden);
        biased("self_attn.k_proj", kv, hidden);
        biased("self_attn.v_proj", kv, hidden);
        biased("self_attn.o_proj", hidden, q);
        biased("mlp.router", experts, hidden);
        folder.tensors.set_halves(CodedFolder::layer(i, "self_attn.sinks"), {heads}, {0.5, -1, 2, 3});
        std::vector<double> up_bias;
        for (std::size_t expert = 0; expert < experts; ++expert) {
            for (std::size_t row = 0; row < width; ++row) {
                up_bias.push_back(mark(expert, false, row));
                up_bias.push_back(mark(expert, true, row));
            }
        }
        folder.tensors.set_halves(in_experts(i, "gate_up_proj_bias"), {experts, 2 * width}, up_bias);
        folder.tensors.set_halves(in_experts(i, "down_proj_bias"), {experts, hidden},
                                  std::vector<double>(experts * hidden, 2));
    }
    return folder;
}

/// [experts, in, out], as transformers writes them.
void add_numbers(CodedFolder& folder) {
    for (std::size_t i = 0; i < layers; ++i) {
        std::vector<double> up(experts * hidden * 2 * width);
        for (std::size_t expert = 0; expert < experts; ++expert) {
            for (std::size_t column = 0; column < hidden; ++column) {
                for (std::size_t row = 0; row < 2 * width; ++row)
                    up[(expert * hidden + column) * 2 * width + row] = mark(expert, row % 2 == 1, row / 2);
            }
        }
        folder.tensors.set_halves(in_experts(i, "gate_up_proj"), {experts, hidden, 2 * width}, up);
        folder.tensors.set_halves(in_experts(i, "down_proj"), {experts, width, hidden},
                                  std::vector<double>(experts * width * hidden, 1));
    }
}

/// Blocks whose element i is the code i % 16, with a scale of 2^(row % 8 - 4).
void add_mxfp4(CodedFolder& folder) {
    folder.config["quantization_config"] = {{"quant_method", "mxfp4"}};
    const auto add = [&](const std::string& name, std::size_t rows, std::size_t columns) {
        std::vector<std::byte> codes;
        std::vector<std::byte> scales;
        for (std::size_t at = 0; at < experts * rows * columns / 2; ++at)
            codes.push_back(static_cast<std::byte>(2 * at % 16 + (2 * at + 1) % 16 * 16));
        for (std::size_t row = 0; row < experts * rows; ++row)
            scales.insert(scales.end(), columns / 32, static_cast<std::byte>(127 + row % 8 - 4));
        folder.tensors[name + "_blocks"] = {
            checkpoints::StoredType::u8, {experts, rows, columns / 32, 16}, codes};
        folder.tensors[name + "_scales"] = {
            checkpoints::StoredType::u8, {experts, rows, columns / 32}, scales};
    };
    for (std::size_t i = 0; i < layers; ++i) {
        add(in_experts(i, "gate_up_proj"), 2 * width, hidden);
        add(in_experts(i, "down_proj"), hidden, width);
    }
}

}  // namespace

TEST_CASE("gpt-oss: gate and up in turns, biases of all experts, sinks as fp32") {
    const FakeMachine machine;
    CodedFolder folder = oss_folder();
    add_numbers(folder);
    RunningModel model(options_of(folder.write()));
    const LayerWeights& layer = model.weights().layers[1];
    for (const std::size_t expert : {0, 3}) {
        for (const std::size_t row : {0, 1, 63}) {
            const std::size_t at = expert * width + row;
            CHECK(half_at(model, layer.gate.values, at * hidden + 7) == mark(expert, false, row));
            CHECK(half_at(model, layer.up.values, at * hidden + 7) == mark(expert, true, row));
            CHECK(half_at(model, layer.gate_bias, at) == mark(expert, false, row));
            CHECK(half_at(model, layer.up_bias, at) == mark(expert, true, row));
        }
    }
    CHECK(half_at(model, layer.down_bias, experts * hidden - 1) == 2);
    CHECK(half_at(model, layer.router_bias, experts - 1) == 0.25F);
    CHECK(on_gpu<float>(model, layer.sinks, heads) == std::vector{0.5F, -1.0F, 2.0F, 3.0F});

    const int before = machine.launch_count();
    CHECK(step_of(model) == 0);
    CHECK(model.runtime().counters().failed_launches == 0);
    CHECK(launches_of(machine, before, "rope_kv_append") == static_cast<int>(layers));
    CHECK(models::activation_of_experts(model.description().model) == Activation::swiglu_oai);
    CHECK_FALSE(models::appending_attention(model.description().model, {}, 0).has_value());
}

TEST_CASE("MXFP4: four bits and a power of two for every 32, widened exactly") {
    const FakeMachine machine;
    CodedFolder folder = oss_folder();
    add_mxfp4(folder);
    {
        RunningModel model(options_of(folder.write()));
        const LayerWeights& layer = model.weights().layers[0];
        const float codes[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};
        for (const std::size_t expert : {0, 2}) {
            for (const std::size_t row : {0, 5, 63}) {
                for (const std::size_t column : {1, 2, 31, 32, 127}) {
                    const std::size_t at = (expert * width + row) * hidden + column;
                    const auto value = [&](std::size_t stored) {
                        return std::ldexp(codes[column % 16],
                                          static_cast<int>((expert * 2 * width + stored) % 8) - 4);
                    };
                    CHECK(half_at(model, layer.gate.values, at) == value(2 * row));
                    CHECK(half_at(model, layer.up.values, at) == value(2 * row + 1));
                }
            }
        }
        CHECK(half_at(model, layer.down.values, 5 * width + 3) == std::ldexp(1.5F, 5 % 8 - 4));
        CHECK(step_of(model) == 0);
        CHECK(model.runtime().counters().failed_launches == 0);
    }
    const auto refused = [&](const CodedFolder& wrong) {
        return refusal([&] { return std::make_unique<RunningModel>(options_of(wrong.write())); });
    };
    CodedFolder wrong = folder;
    wrong.tensors[in_experts(1, "down_proj_scales")].shape = {experts, hidden * width / 32};
    CHECK(refused(wrong).find("as config.json says, it has to be [4, 128, 2]") != std::string::npos);
    wrong = folder;
    wrong.tensors.erase(in_experts(1, "down_proj_scales"));
    CHECK(refused(wrong).find("mlp.experts.down_proj") != std::string::npos);
}
