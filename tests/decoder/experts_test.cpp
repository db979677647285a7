// Mixtures of experts on the fake GPU: Mixtral's and Qwen 3's folders, what of their experts stands where on
// the GPU, what a step launches and reads, and what is refused.
// Starts threads: the thread sanitizer runs this file, too.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <string_view>

#include "checkpoints/pack/quantize_checkpoint.h"
#include "checkpoints/read/checkpoint.h"
#include "decoder/engine/running_model.h"
#include "decoder/error.h"
#include "runtime/quantize/small_floats.h"
#include "tests/decoder/coded_folder.h"
#include "tests/decoder/coded_model.h"
#include "tests/support/fake_machine.h"

using namespace hone;
using namespace hone::decoder;
using namespace hone::test;

namespace {

constexpr std::size_t layers = 3;
constexpr std::size_t experts = 6;
constexpr std::size_t width = 64;  // of a Qwen 3 expert

std::string expert(std::size_t layer, const std::string& module, std::size_t number, const char* name) {
    return CodedFolder::layer(layer, module + '.' + std::to_string(number) + '.' + name);
}

CodedFolder mixtral_folder() {
    CodedFolder folder({.layers = layers}, "mixtral");
    folder.config["num_local_experts"] = experts;
    folder.config["num_experts_per_tok"] = 2;
    for (const auto& [name, extents] : folder.linear_layers()) {
        if (name.find(".mlp.") == std::string::npos) folder.numbers(name, extents.first, extents.second);
    }
    for (std::size_t i = 0; i < layers; ++i) {
        folder.numbers(CodedFolder::layer(i, "block_sparse_moe.gate"), experts, folder.sizes.hidden);
        for (std::size_t e = 0; e < experts; ++e) {
            const std::string module = "block_sparse_moe.experts";
            folder.numbers(expert(i, module, e, "w1"), folder.sizes.between, folder.sizes.hidden);
            folder.numbers(expert(i, module, e, "w2"), folder.sizes.hidden, folder.sizes.between);
            folder.numbers(expert(i, module, e, "w3"), folder.sizes.between, folder.sizes.hidden);
        }
    }
    return folder;
}

/// Layer 1 has one network, the others experts.
CodedFolder qwen_folder() {
    CodedFolder folder({.layers = layers}, "qwen3_moe");
    folder.config["num_experts"] = experts;
    folder.config["num_experts_per_tok"] = 3;
    folder.config["moe_intermediate_size"] = width;
    folder.config["norm_topk_prob"] = true;
    folder.config["decoder_sparse_step"] = 1;
    folder.config["mlp_only_layers"] = {1};
    folder.all_layers([&](const auto& name, auto out, auto in) {
        if (name.find(".mlp.") == std::string::npos || name.find(".1.mlp.") != std::string::npos)
            folder.numbers(name, out, in);
    });
    for (std::size_t i = 0; i < layers; ++i) {
        const std::vector<double> ones(folder.sizes.head_dim, 1);
        folder.tensors.set_halves(CodedFolder::layer(i, "self_attn.q_norm.weight"), {ones.size()}, ones);
        folder.tensors.set_halves(CodedFolder::layer(i, "self_attn.k_norm.weight"), {ones.size()}, ones);
        if (i == 1) continue;
        folder.numbers(CodedFolder::layer(i, "mlp.gate"), experts, folder.sizes.hidden);
        for (std::size_t e = 0; e < experts; ++e) {
            folder.numbers(expert(i, "mlp.experts", e, "gate_proj"), width, folder.sizes.hidden);
            folder.numbers(expert(i, "mlp.experts", e, "up_proj"), width, folder.sizes.hidden);
            folder.numbers(expert(i, "mlp.experts", e, "down_proj"), folder.sizes.hidden, width);
        }
    }
    return folder;
}

/// The same experts in one tensor each, as transformers 5 has them in memory; of another width, made up.
CodedFolder stacked(CodedFolder folder, std::size_t of_width) {
    const std::size_t hidden = folder.sizes.hidden;
    for (std::size_t i = 0; i < layers; ++i) {
        if (folder.values.count(expert(i, "mlp.experts", 0, "up_proj")) == 0) continue;
        std::vector<double> up;
        std::vector<double> down;
        for (std::size_t e = 0; e < experts; ++e) {
            for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
                const std::string full = expert(i, "mlp.experts", e, name);
                std::vector<float> values = folder.values.at(full);
                values.resize(of_width * hidden);
                std::vector<double>& to = std::string_view(name) == "down_proj" ? down : up;
                to.insert(to.end(), values.begin(), values.end());
                folder.tensors.erase(full + ".weight");
            }
        }
        const std::string module = CodedFolder::layer(i, "mlp.experts.");
        folder.tensors.set_halves(module + "gate_up_proj", {experts, 2 * of_width, hidden}, up);
        folder.tensors.set_halves(module + "down_proj", {experts, hidden, of_width}, down);
    }
    return folder;
}

std::string refusal_of(const CodedFolder& folder) {
    return refusal([&] { return std::make_unique<RunningModel>(options_of(folder.write())); });
}

std::vector<float> values(const RunningModel& model, const MatrixWeight& weight) {
    const auto count = static_cast<std::size_t>(weight.rows * weight.columns);
    std::vector<float> found;
    for (const std::uint16_t bits : on_gpu<std::uint16_t>(model, weight.values, count))
        found.push_back(runtime::decode_half(bits));
    return found;
}

std::vector<float> of_all(const CodedFolder& folder, std::size_t layer, const std::string& module,
                          const char* name) {
    std::vector<float> all;
    for (std::size_t e = 0; e < experts; ++e) {
        const std::vector<float>& one = folder.values.at(expert(layer, module, e, name));
        all.insert(all.end(), one.begin(), one.end());
    }
    return all;
}

}  // namespace

TEST_CASE("all experts of a layer stand one after the other, gate, up and down apart, beside their router") {
    const FakeMachine machine;
    const CodedFolder folder = mixtral_folder();
    const RunningModel model(options_of(folder.write()));
    REQUIRE(model.weights().layers.size() == layers);
    for (std::size_t i = 0; i < layers; ++i) {
        const LayerWeights& layer = model.weights().layers[i];
        CHECK(layer.has_experts());
        CHECK(values(model, layer.router) ==
              folder.values.at(CodedFolder::layer(i, "block_sparse_moe.gate")));
        CHECK(values(model, layer.gate) == of_all(folder, i, "block_sparse_moe.experts", "w1"));
        CHECK(values(model, layer.up) == of_all(folder, i, "block_sparse_moe.experts", "w3"));
        CHECK(values(model, layer.down) == of_all(folder, i, "block_sparse_moe.experts", "w2"));
    }
}

TEST_CASE("layers with experts and with one network stand in one model, each with its own weights") {
    const FakeMachine machine;
    const CodedFolder folder = qwen_folder();
    RunningModel model(options_of(folder.write()));
    const Description& description = model.description();
    CHECK(description.has_experts(0));
    CHECK_FALSE(description.has_experts(1));
    CHECK(description.has_experts(2));
    CHECK(description.windows() == std::vector<std::int64_t>{0});
    CHECK(description.window_of(1) == 0);
    CHECK(description.expert_width() == static_cast<std::int64_t>(width));
    CHECK(description.model.renormalized_routing);
    const std::vector<LayerWeights>& all = model.weights().layers;
    CHECK(values(model, all[2].down) == of_all(folder, 2, "mlp.experts", "down_proj"));
    CHECK_FALSE(all[1].has_experts());
    CHECK(values(model, all[1].down) == folder.values.at(CodedFolder::layer(1, "mlp.down_proj")));

    const int before = machine.launch_count();
    static_cast<void>(step_of(model));
    CHECK(launches_of(machine, before, "expert_routing_one_block") == 2);
    CHECK(launches_of(machine, before, "expert_linear") == 2 * 3);  // two products, and the sum of experts
    CHECK(launches_of(machine, before, "expert_linear_combine") == 2);
    CHECK(launches_of(machine, before, "norm_") == 2 * static_cast<int>(layers) + 1);
}

TEST_CASE("experts that stand in one tensor each are the same model") {
    const FakeMachine machine;
    const CodedFolder folder = qwen_folder();
    RunningModel model(options_of(stacked(folder, width).write()));
    for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
        const LayerWeights& layer = model.weights().layers[i];
        CHECK(values(model, layer.router) == folder.values.at(CodedFolder::layer(i, "mlp.gate")));
        CHECK(values(model, layer.gate) == of_all(folder, i, "mlp.experts", "gate_proj"));
        CHECK(values(model, layer.up) == of_all(folder, i, "mlp.experts", "up_proj"));
        CHECK(values(model, layer.down) == of_all(folder, i, "mlp.experts", "down_proj"));
    }
    CodedFolder short_one = stacked(folder, width);
    short_one.tensors.set_halves("model.layers.0.mlp.experts.down_proj",
                                 {experts, width, folder.sizes.hidden},
                                 std::vector<double>(experts * width * folder.sizes.hidden));
    CHECK(contains(refusal_of(short_one),
                   "has the shape [6, 64, 128]; as config.json says, it has to be [6, 128, 64]"));
}

TEST_CASE("experts that hone quantize has made codes of run by their operator, routers by their own") {
    const FakeMachine machine;
    const CodedFolder folder = qwen_folder();
    const checkpoints::QuantizeRequest requests[]{{.format = QuantFormat::fp8},
                                                  {.format = QuantFormat::w4a16, .group = 64},
                                                  {.format = QuantFormat::w4a16, .group = 32, .zeros = true},
                                                  {.format = QuantFormat::w8a16},
                                                  {.format = QuantFormat::w8a8}};
    for (std::size_t i = 0; i < std::size(requests); ++i) {
        CAPTURE(i);
        const auto checkpoint = checkpoints::Checkpoint::open(folder.write());
        const auto layers_of_it = checkpoints::layer_source(checkpoint, requests[i]);
        const std::atomic<bool> stop = false;
        const std::filesystem::path packed = folder.beside("packed" + std::to_string(i));
        REQUIRE(checkpoints::quantize_checkpoint(
            checkpoint, *layers_of_it, packed, [](const auto&) {}, stop));
        RunningModel model(options_of(packed));
        const LayerWeights& layer = model.weights().layers[0];
        CHECK_FALSE(layer.router.is_coded);
        for (const MatrixWeight* weight : {&layer.gate, &layer.up, &layer.down}) {
            CHECK(weight->is_coded);
            const std::int64_t numbers = weight->rows * weight->columns;
            const bool is_small = requests[i].format == QuantFormat::w4a16;
            CHECK(weight->bytes > (is_small ? numbers / 2 : numbers));
            CHECK(weight->bytes < (is_small ? numbers : 2 * numbers));
        }
        const int before = machine.launch_count();
        static_cast<void>(step_of(model));
        const bool is_packed =
            requests[i].format == QuantFormat::w4a16 || requests[i].format == QuantFormat::w8a16;
        CHECK(launches_of(machine, before, "quantized_expert_linear") == 2 * 2 * (is_packed ? 1 : 2));
        CHECK(launches_of(machine, before, "expert_linear_combine") == 2);
        CHECK(model.runtime().counters().failed_launches == 0);
    }
}

TEST_CASE("codes that a checkpoint has of its experts are taken as they are") {
    const FakeMachine machine;
    CodedFolder folder = qwen_folder();
    folder.config["quantization_config"] = {{"quant_method", "fp8"}};
    for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
        for (std::size_t e = 0; e < experts; ++e) {
            folder.fp8(expert(i, "mlp.experts", e, "gate_proj"), width, folder.sizes.hidden, 1,
                       folder.sizes.hidden);
            folder.fp8(expert(i, "mlp.experts", e, "up_proj"), width, folder.sizes.hidden, 1,
                       folder.sizes.hidden);
            folder.fp8(expert(i, "mlp.experts", e, "down_proj"), folder.sizes.hidden, width, 1, width);
        }
    }
    RunningModel model(options_of(folder.write()));
    const MatrixWeight& down = model.weights().layers[2].down;
    REQUIRE(down.is_coded);
    const auto count = static_cast<std::size_t>(down.rows * down.columns);
    const std::vector<std::uint8_t> codes = on_gpu<std::uint8_t>(model, down.packed.codes, count);
    for (std::size_t e = 0; e < experts; ++e) {
        const auto& bytes = folder.tensors[expert(2, "mlp.experts", e, "down_proj") + ".weight"].bytes;
        const std::size_t size = folder.sizes.hidden * width;
        REQUIRE(bytes.size() == size);
        CHECK(std::memcmp(bytes.data(), codes.data() + e * size, size) == 0);
    }
    const int before = machine.launch_count();
    static_cast<void>(step_of(model));
    CHECK(launches_of(machine, before, "quantized_expert_linear") > 0);
}

TEST_CASE("a step's floor has of experts' weights what its tokens choose") {
    const FakeMachine machine;
    const CodedFolder folder = qwen_folder();
    RunningModel model(options_of(folder.write()));
    const auto bytes_of = [](const MatrixWeight& weight) { return 2 * weight.rows * weight.columns; };
    std::int64_t of_experts = 0;
    std::int64_t others = bytes_of(model.weights().head);
    for (const LayerWeights& layer : model.weights().layers) {
        const std::int64_t network = bytes_of(layer.gate) + bytes_of(layer.up) + bytes_of(layer.down);
        others += bytes_of(layer.qkv) + bytes_of(layer.output) + bytes_of(layer.router);
        (layer.has_experts() ? of_experts : others) += network;
    }
    CHECK(model.floor_bytes(1, 0) == others + of_experts / 2);      // 3 of 6
    CHECK(model.floor_bytes(2, 0) == others + of_experts * 3 / 4);  // half of those that the first left
    CHECK(model.description().share_of_experts(0) == 0);

    for (const std::int64_t sequences : {1, 2}) {
        std::int64_t bytes = 0;
        bool routes = false;
        for (const ChainTimes::OfPart& part : model.forward().chain_times(sequences, 20, 2).parts) {
            bytes += part.bytes;
            routes |= part.part == Part::routing;
        }
        CHECK(routes);
        CHECK(std::abs(bytes - model.floor_bytes(sequences, 20)) <= 2);  // parts are rounded layer by layer
    }
}

TEST_CASE("made-up weights are made of experts, too, and after the start nothing is compiled") {
    const FakeMachine machine;
    const Description mixtral = describe_folder(mixtral_folder().write());
    RunningModel model({.made_up = mixtral.model,
                        .max_sequences = 2,
                        .max_context = 64,
                        .max_step_tokens = 64,
                        .runtime = {.use_cache = false}});
    CHECK(model.weights().layers[0].gate.rows == mixtral.model.experts * mixtral.model.intermediate_size);
    const std::uint64_t compiles = model.runtime().counters().compiles;
    static_cast<void>(step_of(model));
    CHECK(model.runtime().counters().compiles == compiles);
    CHECK(model.runtime().counters().failed_launches == 0);
}

TEST_CASE("what of experts does not go is refused by its name") {
    const FakeMachine machine;
    CodedFolder folder = qwen_folder();
    folder.tensors.erase("model.layers.2.mlp.experts.5.up_proj.weight");
    CHECK(contains(refusal_of(folder), "model.layers.2.mlp.experts.5.up_proj.weight"));
    folder = qwen_folder();
    folder.config["num_experts_per_tok"] = 7;
    CHECK(contains(refusal_of(folder), "num_experts_per_tok is 7, allowed is 1 to 6"));
    folder = qwen_folder();
    folder.numbers("model.layers.0.mlp.gate", experts + 1, folder.sizes.hidden);
    CHECK(contains(refusal_of(folder), "[7, 128]"));
    folder = qwen_folder();
    folder.config["quantization_config"] = {{"quant_method", "fp8"}};
    folder.fp8("model.layers.0.mlp.experts.3.down_proj", folder.sizes.hidden, width, 1, width);
    CHECK(contains(refusal_of(folder),
                   "model.layers.0.mlp.experts.0.down_proj.weight has numbers and "
                   "model.layers.0.mlp.experts.3.down_proj.weight has codes"));
    for (std::size_t e = 0; e < experts; ++e)
        folder.fp8(expert(0, "mlp.experts", e, "down_proj"), folder.sizes.hidden, width, 1, width);
    CHECK(contains(refusal_of(folder),
                   "the experts of layer 0 have codes of some weights and numbers of others"));
    folder = qwen_folder();
    folder.config["moe_intermediate_size"] = 32;
    ModelOptions options = options_of(stacked(folder, 32).write());
    options.quantize = checkpoints::QuantizeRequest{.format = QuantFormat::w4a16, .group = 32};
    CHECK(contains(
        refusal([&] { return std::make_unique<RunningModel>(options); }),
        "gate_up_proj: codes of an expert's 32 rows cannot stand behind those of another; allowed with "
        "w4a16 are multiples of 64"));
    folder = mixtral_folder();
    folder.config["model_type"] = "qwen2_moe";
    folder.config["num_experts"] = experts;
    folder.config["moe_intermediate_size"] = width;
    folder.config["shared_expert_intermediate_size"] = width;
    CHECK(contains(refusal_of(folder), "model_type qwen2_moe is not run yet"));

    models::Model model = describe_folder(mixtral_folder().write()).model;
    model.softmax_routing = false;
    model.shared_width = 4;
    model.own_expert_network = true;
    const std::string all = refusal([&] { return describe(model, {}); });
    for (const char* what : {"experts that are not chosen by a softmax over all of them",
                             "an expert that sees all tokens", "experts that are no gated networks"})
        CHECK(contains(all, what));
}
