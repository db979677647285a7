// Models whose layers are as those of others and cost one entry of names each, on the fake GPU: which tensors
// they read, and which operators a step has. Numbers are held against transformers in tests/python/gpu.
// Starts threads: the thread sanitizer runs this file, too.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "decoder/engine/running_model.h"
#include "tests/decoder/coded_folder.h"
#include "tests/decoder/coded_model.h"

using namespace hone;
using namespace hone::decoder;
using namespace hone::test;

namespace {

constexpr CodedSizes sizes;
constexpr std::size_t q = sizes.heads * sizes.head_dim;
constexpr std::size_t kv = sizes.kv_heads * sizes.head_dim;

struct Weight {
    std::string name;
    std::size_t out;
    std::size_t in;
    bool has_bias = false;
};

std::vector<Weight> attention_of(bool qkv_bias, bool output_bias) {
    return {{"self_attn.q_proj", q, sizes.hidden, qkv_bias},
            {"self_attn.k_proj", kv, sizes.hidden, qkv_bias},
            {"self_attn.v_proj", kv, sizes.hidden, qkv_bias},
            {"self_attn.o_proj", sizes.hidden, q, output_bias}};
}

const std::vector<Weight> gate_and_up{{"mlp.gate_proj", sizes.between, sizes.hidden},
                                      {"mlp.up_proj", sizes.between, sizes.hidden},
                                      {"mlp.down_proj", sizes.hidden, sizes.between}};

void bias(CodedFolder& folder, const std::string& name, std::size_t size) {
    folder.tensors.set_halves(name + ".bias", {size}, std::vector<double>(size, 0.25));
}

CodedFolder folder_of(const std::string& model_type, std::vector<Weight> layer,
                      const std::vector<Weight>& network, bool norm_bias) {
    CodedFolder folder(sizes, model_type);
    layer.insert(layer.end(), network.begin(), network.end());
    if (norm_bias) bias(folder, "model.norm", sizes.hidden);
    for (std::size_t i = 0; i < sizes.layers; ++i) {
        for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) {
            if (norm_bias) bias(folder, CodedFolder::layer(i, norm), sizes.hidden);
        }
        for (const Weight& weight : layer) {
            folder.numbers(CodedFolder::layer(i, weight.name), weight.out, weight.in);
            if (weight.has_bias) bias(folder, CodedFolder::layer(i, weight.name), weight.out);
        }
    }
    return folder;
}

/// One step has two norms a layer and one at the end, and no launch fails.
void check_step(RunningModel& model, const FakeMachine& machine) {
    const int before = machine.launch_count();
    CHECK(step_of(model) == 0);
    CHECK(launches_of(machine, before, "norm_") == 2 * static_cast<int>(sizes.layers) + 1);
    CHECK(launches_of(machine, before, "attention") >= static_cast<int>(sizes.layers));
    CHECK(launches_of(machine, before, "sample") == 1);
    CHECK(model.runtime().counters().failed_launches == 0);
}

std::uint16_t first_of(const RunningModel& model, const void* weights) {
    const runtime::CurrentContext current(model.gpu().driver(), model.gpu().context());
    const auto address = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(weights));
    return runtime::download(model.gpu().driver(), runtime::DeviceSpan<std::uint16_t>{address, 1}).front();
}

constexpr std::uint16_t one = 0x3C00;  // of fp16: what CodedFolder's norms have

std::string refusal_without(CodedFolder folder, const std::string& tensor) {
    folder.tensors.erase(tensor);
    return refusal([&] { return std::make_unique<RunningModel>(options_of(folder.write())); });
}

}  // namespace

TEST_CASE("Gemma: a tied head, a scale of tokens' rows, norms without their 1") {
    const FakeMachine machine;
    CodedFolder folder = folder_of("gemma", attention_of(false, false), gate_and_up, false);
    folder.tensors.erase("lm_head.weight");
    RunningModel model(options_of(folder.write()));
    CHECK(model.description().activation() == Activation::gelu_tanh);
    CHECK(model.description().embedding_scale() == 11.3125F);  // the root of 128 in fp16
    CHECK(first_of(model, model.weights().layers[1].network_norm.weight) == one);
    CHECK(norm_problem(model).find(" unit_offset=yes ") != std::string::npos);
    CHECK(model.weights().head.values == model.weights().embedding);
    check_step(model, machine);
}

TEST_CASE("GLM-4: neighbours of half a head rotate, gate and up stand in one tensor") {
    const FakeMachine machine;
    const std::vector<Weight> network{{"mlp.gate_up_proj", 2 * sizes.between, sizes.hidden},
                                      {"mlp.down_proj", sizes.hidden, sizes.between}};
    CodedFolder folder = folder_of("glm", attention_of(true, false), network, false);
    folder.config["attention_bias"] = true;
    RunningModel model(options_of(folder.write()));
    CHECK(model.description().model.interleaved_rotary);
    CHECK(model.description().model.rotary_dim == 16);
    CHECK(model.weights().layers[0].qkv_bias != nullptr);
    CHECK(model.weights().layers[0].output_bias == nullptr);
    check_step(model, machine);
    CHECK(refusal_without(folder, "model.layers.1.mlp.gate_up_proj.weight")
              .find("model.layers.1.mlp.gate_up_proj.weight") != std::string::npos);
}

TEST_CASE("StarCoder 2: LayerNorm, biases, a network without a gate") {
    const FakeMachine machine;
    const std::vector<Weight> network{{"mlp.c_fc", sizes.between, sizes.hidden, true},
                                      {"mlp.c_proj", sizes.hidden, sizes.between, true}};
    CodedFolder folder = folder_of("starcoder2", attention_of(true, true), network, true);
    folder.config["sliding_window"] = 16;
    folder.tensors.erase("lm_head.weight");
    RunningModel model(options_of(folder.write()));
    const LayerWeights& layer = model.weights().layers[1];
    for (const void* given : {layer.qkv_bias, layer.output_bias, layer.up_bias, layer.down_bias,
                              layer.attention_norm.bias, layer.network_norm.bias}) {
        REQUIRE(given != nullptr);
        CHECK(first_of(model, given) == 0x3400);  // 0.25
    }
    CHECK(first_of(model, layer.attention_norm.weight) == one);
    CHECK(model.description().windows() == std::vector<std::int64_t>{16});
    CHECK_FALSE(model.description().model.gated_ffn);
    check_step(model, machine);
    CHECK(refusal_without(folder, "model.layers.0.mlp.c_proj.bias").find("model.layers.0.mlp.c_proj.bias") !=
          std::string::npos);
}

TEST_CASE(
    "StableLM: LayerNorm in front of a gated network, a quarter of a head rotates; blocks side by side") {
    const FakeMachine machine;
    CodedFolder folder = folder_of("stablelm", attention_of(true, false), gate_and_up, true);
    folder.config["use_qkv_bias"] = true;
    {
        RunningModel model(options_of(folder.write()));
        CHECK(model.description().model.rotary_dim == 8);
        CHECK(model.weights().layers[1].qkv_bias != nullptr);
        CHECK(model.weights().final_norm.bias != nullptr);
        check_step(model, machine);
    }
    const auto refused_with = [&](const char* option) {
        folder.config[option] = true;
        const std::string words =
            refusal([&] { return std::make_unique<RunningModel>(options_of(folder.write())); });
        folder.config[option] = false;
        return words;
    };
    CHECK(refused_with("use_parallel_residual").find("not run yet: parallel blocks") != std::string::npos);
    CHECK(refused_with("qk_layernorm").find("a norm of queries and keys that subtracts a mean") !=
          std::string::npos);
}
