// Models whose layers are as those of others and cost one entry of names each, on the fake GPU: which tensors
// they read, and which operators a step has. Numbers are held against transformers in tests/python/gpu.
// Starts threads: the thread sanitizer runs this file, too.
#include <doctest/doctest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/engine/running_model.h"
#include "kernel_templates/norm/declaration.h"
#include "kernel_templates/sample/declaration.h"
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
    return on_gpu<std::uint16_t>(model, weights, 1).front();
}

std::uint64_t scalar_of(const FakeLaunch& launch, norm::CallScalar which) {
    return launch.parameters[std::size_t{norm::pointer_count} + static_cast<std::size_t>(which)];
}
float epsilon_of(const FakeLaunch& launch) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(scalar_of(launch, norm::epsilon)));
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
    CHECK(models::activation_of(model.description().model) == Activation::gelu_tanh);
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

TEST_CASE("GLM-4 of 2025: the same with norms behind attention and network, too") {
    const FakeMachine machine;
    const std::vector<Weight> network{{"mlp.gate_up_proj", 2 * sizes.between, sizes.hidden},
                                      {"mlp.down_proj", sizes.hidden, sizes.between}};
    CodedFolder folder = folder_of("glm4", attention_of(true, false), network, false);
    folder.config["attention_bias"] = true;
    for (std::size_t i = 0; i < sizes.layers; ++i) {
        folder.norm(CodedFolder::layer(i, "post_self_attn_layernorm"));
        folder.norm(CodedFolder::layer(i, "post_mlp_layernorm"));
    }
    RunningModel model(options_of(folder.write()));
    CHECK(model.description().model.interleaved_rotary);
    CHECK(model.description().has_norms_in_front());
    CHECK(model.weights().layers[0].qkv_bias != nullptr);
    const int before = machine.launch_count();
    CHECK(step_of(model) == 0);
    CHECK(launches_of(machine, before, "norm_") == 4 * static_cast<int>(sizes.layers) + 1);
    CHECK(model.runtime().counters().failed_launches == 0);
    CHECK(refusal_without(folder, "model.layers.1.post_mlp_layernorm.weight")
              .find("model.layers.1.post_mlp_layernorm.weight") != std::string::npos);
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
    folder.config["use_parallel_residual"] = true;
    {
        RunningModel model(options_of(folder.write()));
        const int before = machine.launch_count();
        CHECK(step_of(model) == 0);
        CHECK(launches_of(machine, before, "norm_") == static_cast<int>(sizes.layers) + 1);
        CHECK(model.runtime().counters().failed_launches == 0);
    }
    folder.config["qk_layernorm"] = true;
    const std::string words =
        refusal([&] { return std::make_unique<RunningModel>(options_of(folder.write())); });
    CHECK(words.find("a norm of queries and keys that subtracts a mean") != std::string::npos);
}

TEST_CASE("Granite: the residual stream is held without its factor, temperatures have the logits' divisor") {
    const FakeMachine machine;
    CodedFolder folder = folder_of("granite", attention_of(false, false), gate_and_up, false);
    const Description plain = describe_folder(folder.write());
    CHECK(plain.embedding_scale() == 1);
    CHECK(plain.score_scale() == 1);
    CHECK(plain.stream_epsilon() == static_cast<float>(plain.model.norm_epsilon));
    CHECK(plain.logit_divisor() == 1);
    folder.config["embedding_multiplier"] = 12;
    folder.config["attention_multiplier"] = 0.0625;
    folder.config["residual_multiplier"] = 0.25;
    folder.config["logits_scaling"] = 6;
    folder.config["rms_norm_eps"] = 1e-5;
    const std::string in_halves = refusal([&] { static_cast<void>(describe_folder(folder.write())); });
    CHECK(in_halves.find("a residual_multiplier below 1 in fp16") != std::string::npos);
    folder.config["torch_dtype"] = "bfloat16";
    for (const auto& [key, value] : {std::pair{"embedding_multiplier", 1e300},
                                     {"attention_multiplier", 1e-300},
                                     {"attention_multiplier", 1e39},
                                     {"residual_multiplier", 1e-30},
                                     {"residual_multiplier", 1e30},
                                     {"logits_scaling", 1e300},
                                     {"logits_scaling", 1e-300}}) {
        CodedFolder odd = folder;
        odd.config[key] = value;
        const std::string words = refusal([&] { static_cast<void>(describe_folder(odd.write())); });
        CHECK_MESSAGE(words.find(key) != std::string::npos, words);
        CHECK(words.find("allowed is 1.2e-38 to 3.4e+38") != std::string::npos);
    }
    RunningModel model(options_of(folder.write()));
    CHECK(model.description().embedding_scale() == 48);
    CHECK(model.description().score_scale() == 0.0625F);
    check_step(model, machine);
    const int before = machine.launch_count();
    CHECK(step_of(model, {.wishes = {.temperature = 0.5F}}) == 0);
    const std::vector<FakeLaunch> norms = all_launches_of(machine, before, "norm_");
    REQUIRE(norms.size() == 2 * sizes.layers + 1);
    for (const FakeLaunch& launch : norms) CHECK(epsilon_of(launch) == doctest::Approx(16e-5));
    const std::vector<FakeLaunch> samplers = all_launches_of(machine, before, "sample");
    REQUIRE(samplers.size() == 1);
    CHECK(on_gpu<float>(model, CUdeviceptr{samplers[0].parameters[sample::temperature]}, 1).front() == 3);
}

TEST_CASE("OLMo 2: norms behind alone, so products take the residual stream, and norms of all heads") {
    const FakeMachine machine;
    CodedFolder folder = folder_of("olmo2", attention_of(false, false), gate_and_up, false);
    for (std::size_t i = 0; i < sizes.layers; ++i) {
        folder.tensors.erase(CodedFolder::layer(i, "input_layernorm.weight"));
        folder.norm(CodedFolder::layer(i, "post_feedforward_layernorm"));
        folder.tensors.set_halves(CodedFolder::layer(i, "self_attn.q_norm.weight"), {q},
                                  std::vector<double>(q, 1));
        folder.tensors.set_halves(CodedFolder::layer(i, "self_attn.k_norm.weight"), {kv},
                                  std::vector<double>(kv, 1));
    }
    {
        RunningModel model(options_of(folder.write()));
        CHECK(model.weights().layers[1].network_norm.weight == nullptr);
        const int before = machine.launch_count();
        CHECK(step_of(model) == 0);
        // In a layer: queries, keys, behind attention, the sum, behind the network. Then the next sum, which
        // is the last norm's at the end.
        const std::vector<FakeLaunch> norms = all_launches_of(machine, before, "norm_");
        REQUIRE(norms.size() == 6 * sizes.layers);
        const auto argument = [&](std::size_t launch, norm::Pointer which) {
            return norms[launch].parameters[which];
        };
        CHECK(argument(1, norm::x) == argument(0, norm::x) + q * sizeof(std::uint16_t));
        for (const std::size_t of_heads : {0, 1}) {
            CHECK(argument(of_heads, norm::out) == argument(of_heads, norm::x));
            CHECK(scalar_of(norms[of_heads], norm::x_stride) == q + 2 * kv);
            CHECK(scalar_of(norms[of_heads], norm::out_stride) == q + 2 * kv);
        }
        CHECK(argument(2, norm::out) == argument(2, norm::x));
        CHECK(argument(3, norm::x) == argument(2, norm::out));
        CHECK(argument(3, norm::sum) == argument(3, norm::residual));
        CHECK(model.runtime().counters().failed_launches == 0);
    }
    CHECK(refusal_without(folder, "model.layers.1.self_attn.q_norm.weight")
              .find("model.layers.1.self_attn.q_norm.weight") != std::string::npos);
    folder.config["quantization_config"] = {{"quant_method", "fp8"}};
    folder.all_layers([&](const auto& name, auto out, auto in) { folder.fp8(name, out, in, 1, in); });
    RunningModel model(options_of(folder.write()));
    const int before = machine.launch_count();
    CHECK(step_of(model, {}, many_tokens()) == 0);
    // No norm in front could make codes: each of attention's products and both halves of the network do; in
    // the last layer only queries, keys and values have many rows.
    CHECK(launches_of(machine, before, "quantized_linear_quantize") ==
          4 * static_cast<int>(sizes.layers - 1) + 1);
    CHECK(model.runtime().counters().failed_launches == 0);
}

TEST_CASE("what a folder says or has of a model beyond what is computed is warned of") {
    const FakeMachine machine;
    const auto warnings = [](const CodedFolder& folder) {
        std::vector<std::string> told;
        ModelOptions options = options_of(folder.write());
        options.runtime.on_warning = [&](std::string_view text) { told.emplace_back(text); };
        const RunningModel model(options);
        return told;
    };
    const auto tells = [&](const CodedFolder& folder, std::string_view text) {
        const std::vector<std::string> told = warnings(folder);
        return told.size() == 1 && told.front().find(text) != std::string::npos;
    };
    const CodedFolder plain = folder_of("llama", attention_of(false, false), gate_and_up, false);
    CHECK(warnings(plain).empty());

    CodedFolder folder = plain;
    folder.config["qk_norm"] = true;
    CHECK(tells(folder, "config.json: not read: qk_norm;"));
    folder = plain;
    folder.config["num_hidden_layers"] = 1;
    CHECK(tells(folder,
                ": not read: model.layers.1.input_layernorm.weight, model.layers.1.mlp.down_proj.weight, "
                "model.layers.1.mlp.gate_proj.weight and 6 more; the model that config.json describes has "
                "no such weights"));
    folder = plain;
    bias(folder, "model.layers.1.self_attn.q_proj", q);
    CHECK(tells(folder, ": not read: model.layers.1.self_attn.q_proj.bias; "));

    // What is no weight, what a tied head has twice, and biases of zeros that come with codes.
    folder = plain;
    folder.config["tie_word_embeddings"] = true;
    folder.tensors.set_floats("model.layers.0.self_attn.rotary_emb.inv_freq", {2}, {1, 0.5F});
    folder.tensors.set_floats("model.layers.0.self_attn.bias", {1, 1, 1, 1}, {1});
    CHECK(warnings(folder).empty());
    folder = CodedFolder();
    folder.config["quantization_config"] = {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}};
    folder.all_layers(
        [&](const std::string& name, std::size_t out, std::size_t in) { folder.gptq(name, out, in); });
    bias(folder, "model.layers.0.self_attn.q_proj", q);
    CHECK(warnings(folder).empty());
}
