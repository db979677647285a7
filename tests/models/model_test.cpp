#include "models/model.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "models/error.h"
#include "models/model_document.h"
#include "models/rotation.h"
#include "runtime/system/input_error.h"
#include "tests/support/scratch.h"

using namespace hone;
using namespace hone::models;

namespace {

const char* const llama = R"({
  "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8,
  "num_hidden_layers": 32, "vocab_size": 128256, "max_position_embeddings": 8192, "rms_norm_eps": 1e-05,
  "hidden_act": "silu", "torch_dtype": "bfloat16", "tie_word_embeddings": false, "rope_scaling": null,
  "architectures": ["LlamaForCausalLM"]
})";

Model from_json(const std::string& text) {
    return model_from(ModelDocument::from_json(text, "config.json"), "test");
}
Model from_yaml(const std::string& text) {
    return model_from(ModelDocument::from_yaml(text, "model.yaml"), "test");
}

Rotations rotations_of(const std::string& text) {
    const auto document = ModelDocument::from_json(text, "config.json");
    return read_rotations(document, model_from(document, "test"));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

/// What the InputError says, or "no error".
std::string error_of(const std::string& json) {
    try {
        static_cast<void>(from_json(json));
    } catch (const runtime::InputError& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("a Llama config.json has the sizes that decide shapes") {
    const Model model = from_json(llama);
    CHECK(model.hidden_size == 4096);
    CHECK(model.head_dim == 128);
    CHECK(model.num_key_value_heads == 8);
    CHECK(model.norm == "rmsnorm");
    CHECK(model.norm_epsilon == doctest::Approx(1e-5));
    CHECK(model.dtype == Dtype::bf16);
    CHECK(model.activation == "silu");
    CHECK(model.gated_ffn);
    CHECK_FALSE(model.qk_norm);
}

TEST_CASE("GPT-2's spellings, with n_inner null, are understood") {
    const Model model =
        from_json(R"({"n_embd": 768, "n_head": 12, "n_layer": 12, "n_inner": null, "n_positions": 1024,
        "vocab_size": 50257, "layer_norm_epsilon": 1e-05, "activation_function": "gelu_new"})");
    CHECK(model.hidden_size == 768);
    CHECK(model.intermediate_size == 3072);
    CHECK(model.norm == "layernorm");
    CHECK(model.norm_bias);
    CHECK(model.activation == "gelu_tanh");
    CHECK_FALSE(model.gated_ffn);
    CHECK(model.max_position_embeddings == 1024);
    CHECK(model.rotary_dim == 0);
}

TEST_CASE("heads are rotated with RMSNorm, and with LayerNorm where the file says so; a part is even") {
    CHECK(from_json(llama).rotary_dim == 128);
    CHECK(from_json(replaced(llama, "{", R"({"partial_rotary_factor": 0.4, )")).rotary_dim == 50);
    const std::string layer_norm = replaced(llama, "rms_norm_eps", "layer_norm_eps");
    CHECK(from_json(layer_norm).rotary_dim == 0);
    CHECK(from_json(replaced(layer_norm, "{", R"({"rotary_pct": 1, )")).rotary_dim == 128);
    CHECK(from_json(replaced(layer_norm, "{", R"({"rope_theta": 10000.0, )")).rotary_dim == 128);
    CHECK(from_json(llama).softcap == 0);
    CHECK(from_json(replaced(llama, "{", R"({"attn_logit_softcapping": 50.0, )")).softcap == 50);
}

TEST_CASE("the language model of a multimodal file is its text_config; dtype may stand above") {
    const Model model =
        from_json(replaced(llama, "{", R"({"text_config": {"hidden_size": 2048, "dtype": "float16"}, )"));
    CHECK(model.hidden_size == 2048);
    CHECK(model.dtype == Dtype::fp16);
    CHECK(model.head_dim == 64);
}

TEST_CASE("comments are allowed, sliding windows can be switched off, Qwen 3 normalizes heads") {
    CHECK(from_json("// exported\n" + std::string(llama)).hidden_size == 4096);
    CHECK(from_json(replaced(llama, "{", R"({"sliding_window": 4096, )")).sliding_window == 4096);
    CHECK(from_json(replaced(llama, "{", R"({"sliding_window": 4096, "use_sliding_window": false, )"))
              .sliding_window == 0);
    CHECK(from_json(replaced(llama, "{", R"({"model_type": "qwen3", )")).qk_norm);
    CHECK(from_json(replaced(llama, "{", R"({"num_local_experts": 8, )")).experts == 8);
    CHECK_FALSE(from_json(llama).qkv_bias);
    CHECK(from_json(replaced(llama, "{", R"({"model_type": "qwen2", )")).qkv_bias);
    CHECK_FALSE(from_json(replaced(llama, "{", R"({"model_type": "qwen2", )")).output_bias);
    const Model biased = from_json(replaced(llama, "{", R"({"attention_bias": true, "mlp_bias": true, )"));
    CHECK((biased.qkv_bias && biased.output_bias && biased.ffn_bias));
    CHECK(from_json(replaced(llama, "{", R"({"kv_lora_rank": 512, )")).latent_attention);
}

TEST_CASE("what a file says of quantized weights is kept, wherever it says it") {
    CHECK_FALSE(from_json(llama).quantization.has_value());
    CHECK_FALSE(
        from_json(replaced(llama, "{", R"({"quantization_config": null, )")).quantization.has_value());
    const std::string awq = R"("quantization_config": {"quant_method": "awq", "bits": 4}, )";
    CHECK(from_json(replaced(llama, "{", "{" + awq)).quantization->method() == "awq");
    const Model nested =
        from_json(replaced(llama, "{", "{\"text_config\": {" + awq + "\"dtype\": \"float16\"}, "));
    CHECK(nested.quantization->method() == "awq");
    CHECK(error_of(replaced(llama, "{", R"({"quantization_config": 4, )")) ==
          "config.json: quantization_config: not an object");
    const Model packed = from_json(
        replaced(llama, "{", R"({"quantization_config": {"quant_method": "hone", "dtype": "fp16"}, )"));
    CHECK(packed.dtype == Dtype::fp16);
    CHECK(error_of(
              replaced(llama, "{", R"({"quantization_config": {"quant_method": "hone", "dtype": "fp32"}, )"))
              .find("dtype is \"fp32\"; allowed: fp16 and bf16") != std::string::npos);
}

TEST_CASE("a file of very many keys is read in no time") {
    std::string keys = "{";
    for (int i = 0; i < 150'000; ++i) keys += "\"unknown_" + std::to_string(i) + "\": 1, ";
    const auto start = std::chrono::steady_clock::now();
    const Model model = from_json(replaced(llama, "{", keys));
    REQUIRE(model.warnings.size() == 2);
    CHECK(model.warnings[1].find("and 149980 more") != std::string::npos);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
}

TEST_CASE("a scaling of rotations that is no object is refused, null is none") {
    const auto rotation_of = [](const std::string& value) {
        return rotations_of(replaced(llama, "\"rope_scaling\": null", "\"rope_scaling\": " + value)).full;
    };
    CHECK(rotation_of("null").scaling.kind == RopeScaling::Kind::none);
    CHECK(rotation_of(R"({"rope_type": "default"})").scaling.kind == RopeScaling::Kind::none);
    CHECK(rotation_of(R"({"type": "linear", "factor": 2})").scaling.kind == RopeScaling::Kind::linear);
    const std::pair<const char*, std::string> refused[]{
        {"\"linear\"", "\"linear\""},
        {"2.5", "2.5"},
        {"4", "4"},
        {"true", "true"},
        {"[2.0]", "a list of 1"},
        {R"([{"type": "linear", "factor": 2}])", "a list of lists or objects"},
        {R"("linear", "rope_parameters": {"rope_type": "default"})", "\"linear\""}};
    for (const auto& [value, shown] : refused) {
        CHECK_THROWS_WITH(
            static_cast<void>(rotation_of(value)),
            ("config.json:4: rope_scaling is " + shown + "; allowed is an object, or null").c_str());
    }
    CHECK_THROWS_WITH(static_cast<void>(rotation_of(R"({"rope_type": "spiral"})")),
                      "config.json:4: rope_scaling.rope_type is \"spiral\"; allowed is default, dynamic, "
                      "linear, llama3, yarn or longrope");
}

TEST_CASE("a scaling of rotations that no angles can be made of is refused with the file and the value") {
    const auto error_of_scaling = [](const std::string& value) -> std::string {
        try {
            static_cast<void>(
                rotations_of(replaced(llama, "\"rope_scaling\": null", "\"rope_scaling\": {" + value + "}")));
        } catch (const ModelError& error) {
            return error.what();
        }
        return "no error";
    };
    const std::string says = "config.json: the scaling of rotary embeddings has ";
    CHECK(error_of_scaling(R"("type": "linear", "factor": 0.5)") ==
          says + "factor 0.5; allowed is from 1 on");
    const std::string llama3 = R"("rope_type": "llama3", "factor": 8, "low_freq_factor": 4, )";
    CHECK(error_of_scaling(llama3 + R"("high_freq_factor": 4)") ==
          says + "high_freq_factor 4; allowed is above low_freq_factor, which is 4");
    CHECK(error_of_scaling(llama3 + R"("high_freq_factor": 5)") == "no error");
    const std::string yarn = R"("rope_type": "yarn", "factor": 4, )";
    CHECK(error_of_scaling(yarn + R"("beta_fast": 1)") ==
          says + "beta_fast 1; allowed is above beta_slow, which is 1");
    CHECK(error_of_scaling(yarn + R"("attention_factor": -1)") ==
          says + "attention_factor -1; allowed is from 0 on");
    CHECK(error_of_scaling(yarn + R"("original_max_position_embeddings": 0.5)") ==
          says + "original_max_position_embeddings 0.5; allowed is from 1 on");
}

TEST_CASE("layers with a window turn by a base of their own where the architecture says so") {
    const std::string gemma = R"({"model_type": "gemma3_text", "hidden_size": 640, "sliding_window": 512)";
    const Rotations usual =
        rotations_of(gemma + R"(, "rope_scaling": {"rope_type": "linear", "factor": 8}})");
    CHECK(usual.full.base == 1e6);
    CHECK(usual.full.scaling.kind == RopeScaling::Kind::linear);
    CHECK(usual.windowed == RotationNumbers{.base = 10'000, .scaling = {}});
    CHECK(rotations_of(gemma + R"(, "rope_local_base_freq": 5000})").windowed.base == 5000);

    const Rotations newer = rotations_of(gemma + R"(, "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 2000000},
        "sliding_attention": {"rope_type": "default", "rope_theta": 7000}}})");
    CHECK(newer.full.base == 2e6);
    CHECK(newer.full.scaling.factor == 8);
    CHECK(newer.windowed == RotationNumbers{.base = 7000, .scaling = {}});

    const Rotations olmo = rotations_of(
        replaced(llama, "\"rope_scaling\": null",
                 R"("model_type": "olmo3", "rope_scaling": {"rope_type": "yarn", "factor": 8})"));
    CHECK(olmo.full.scaling.kind == RopeScaling::Kind::yarn);
    CHECK(olmo.windowed == RotationNumbers{.base = olmo.full.base, .scaling = {}});
    CHECK(rotations_of(llama).windowed == rotations_of(llama).full);
}

TEST_CASE("longrope has a factor for each pair of short and of long contexts") {
    const auto phi = [](const std::string& scaling) {
        return replaced(llama, "\"rope_scaling\": null",
                        "\"head_dim\": 4, \"original_max_position_embeddings\": 4096, \"rope_scaling\": {" +
                            scaling + "}");
    };
    const RopeScaling scaling =
        rotations_of(phi(R"("type": "su", "short_factor": [1, 1.5], "long_factor": [2, 4])")).full.scaling;
    CHECK(scaling.kind == RopeScaling::Kind::longrope);
    CHECK(scaling.factor == 2);  // 8192 of 4096
    CHECK(scaling.original_max_position == 4096);
    CHECK(scaling.short_factors == std::vector{1.0, 1.5});
    CHECK(scaling.long_factors == std::vector{2.0, 4.0});
    const std::pair<const char*, const char*> refused[]{
        {R"("type": "longrope", "long_factor": [2, 4])", "needs short_factor, a list of 2 numbers"},
        {R"("type": "longrope", "short_factor": 3, "long_factor": [2, 4])",
         "short_factor is 3; allowed is a list of numbers"},
        {R"("type": "longrope", "short_factor": [1], "long_factor": [2, 4])",
         "has short_factor 1; allowed is 2 of them, one a pair"},
        {R"("type": "longrope", "short_factor": [1, 1], "long_factor": [2, 0])",
         "has long_factor 0; allowed is above 0"}};
    for (const auto& [given, says] : refused) {
        std::string error;
        try {
            static_cast<void>(rotations_of(phi(given)));
        } catch (const ModelError& refusal) {
            error = refusal.what();
        }
        CHECK(error.find(says) != std::string::npos);
    }
}

TEST_CASE("a config.json has the files that older checkpoints have beside it") {
    const test::Scratch scratch;
    std::ofstream(scratch.path("config.json")) << llama;
    std::ofstream(scratch.path("quantize_config.json")) << R"({"bits": 4, "group_size": 128})";
    const std::filesystem::path file = scratch.path("config.json");
    CHECK(read_model_file(file, "test").quantization->method() == "gptq");
    CHECK(read_model_folder(file.parent_path()).quantization->method() == "gptq");
}

TEST_CASE("bad model files name file, key and what is allowed") {
    struct Case {
        std::string json;
        std::string expected;
    };
    const auto with_hidden = [](const std::string& value) {
        return replaced(llama, "\"hidden_size\": 4096", "\"hidden_size\": " + value);
    };
    const std::vector<Case> cases{
        {"", "not valid JSON"},
        {"[]", "top level is not an object"},
        {"null", "top level is not an object"},
        {"{", "config.json:1: not valid JSON"},
        {std::string(llama).substr(0, 80), "not valid JSON"},
        {"{}", "hidden_size is missing (accepted spellings: hidden_size, n_embd, d_model)"},
        {with_hidden("0"), "hidden_size is 0, allowed is 1 to 16777216"},
        {with_hidden("-4096"), "hidden_size is -4096"},
        {with_hidden("16777217"), "hidden_size is 16777217"},
        {with_hidden("99999999999999999999"), "whole number"},
        {with_hidden("9223372036854775808"), "whole number"},
        {with_hidden("1e400"), "not valid JSON"},
        {with_hidden("4096.5"), "hidden_size is 4096.5, allowed is a whole number from 1 to 16777216"},
        {with_hidden("\"4096\""), "hidden_size is \"4096\", allowed is a whole number"},
        {with_hidden("true"), "hidden_size is true, allowed is a whole number"},
        {with_hidden("[4096]"), "hidden_size is a list of 1, allowed is a whole number"},
        {with_hidden("{}"), "hidden_size is an object, allowed is a whole number"},
        {with_hidden("null"), "hidden_size is missing"},
        {with_hidden("100"), "does not divide hidden_size 100"},
        {with_hidden("4096, \"hidden_size\": 8192"), "stands twice"},
        {replaced(llama, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": 5"),
         "does not divide the 32 attention heads"},
        {replaced(llama, "\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": -1.0"),
         "rms_norm_eps is -1, allowed is a number"},
        {replaced(llama, "\"rms_norm_eps\": 1e-05,", ""), "rms_norm_eps, layer_norm_eps"},
        {replaced(llama, "\"rms_norm_eps\": 1e-05,", "\"rms_norm_eps\": \"x\","), "rms_norm_eps"},
        {replaced(llama, "bfloat16", "bfloat61"), "did you mean 'bfloat16'"},
        {replaced(llama, "\"bfloat16\"", "16"), "torch_dtype is 16, allowed is a text"},
        {replaced(llama, "bfloat16", "bf\\u0000"), "is 'bf?', allowed is bfloat16"},
        {replaced(llama, "silu", "sillu"), "did you mean 'silu'"},
        {replaced(llama, "\"vocab_size\": 128256,", ""), "vocab_size is missing"},
        {replaced(llama, "\"num_hidden_layers\": 32,", ""), "num_hidden_layers, n_layer"},
        {replaced(llama, "\"intermediate_size\": 14336,", ""), "intermediate_size, n_inner"},
        {std::string(100000, '['), "deeper than 32"},
        {"{\"a\":" + std::string(100, '{'), "config.json"},
    };
    for (const Case& one : cases) {
        CAPTURE(one.json.substr(0, 120));
        const std::string error = error_of(one.json);
        CHECK_MESSAGE(error.find(one.expected) != std::string::npos, error);
        CHECK(error.starts_with("config.json"));
    }
}

TEST_CASE("an error names the line of the key") {
    CHECK(error_of(replaced(llama, "\"vocab_size\": 128256", "\"vocab_size\": -1"))
              .starts_with("config.json:3: vocab_size is -1"));
}

TEST_CASE("YAML says the same with the same errors") {
    const std::string yaml =
        "hidden_size: 4096\nintermediate_size: 14336\nnum_attention_heads: 32\nnum_hidden_layers: 32\n"
        "vocab_size: 1000\nrms_norm_eps: 1e-5\ndtype: bfloat16\n";
    CHECK(from_yaml(yaml).hidden_size == 4096);
    const std::string quantized =
        yaml + "quantization_config: {quant_method: gptq, bits: 4, sym: true, a: null}\n";
    CHECK(from_yaml(quantized).quantization->integer({"bits"}) == 4);
    CHECK(from_yaml(quantized).quantization->boolean("sym") == true);
    CHECK_THROWS_WITH_AS(
        from_yaml(yaml + "quantization_config: {quant_method: gptq, bits: [4]}\n"),
        "model.yaml:8: quantization_config: bits is a list or a map; allowed in YAML are scalars",
        runtime::InputError);
    CHECK_THROWS_AS(from_yaml(yaml + "quantization_config: 4\n"), runtime::InputError);
    CHECK_THROWS_AS(from_yaml(yaml + "hidden_size: 1\n"), runtime::InputError);
    CHECK_THROWS_AS(from_yaml("- 1\n- 2\n"), runtime::InputError);
    CHECK_THROWS_AS(from_yaml("a: [1, 2"), runtime::InputError);
    CHECK_THROWS_AS(from_yaml(replaced(yaml, "32", "\"32\"")), runtime::InputError);
    CHECK_THROWS_AS(from_yaml("? [a]\n: 1\n"), runtime::InputError);
    CHECK_THROWS_AS(from_yaml(std::string(2000, '[')), runtime::InputError);
    CHECK_THROWS_AS(from_yaml(""), runtime::InputError);
    CHECK(from_yaml(yaml + "a: &a [*a]\nb: &b {c: *b}\nd: [[1], {}]\n").hidden_size == 4096);  // endless
    CHECK_THROWS_WITH_AS(from_yaml(yaml + "---\n" + yaml), "model.yaml: has 2 documents; allowed: one",
                         runtime::InputError);
}

TEST_CASE("files that are too large, missing or no file are refused") {
    const std::filesystem::path file = std::filesystem::temp_directory_path() / "hone_model_test_large.json";
    std::ofstream(file) << std::string((std::size_t{4} << 20) + 1, ' ');
    CHECK_THROWS_AS(static_cast<void>(ModelDocument::read(file)), runtime::InputError);
    std::filesystem::remove(file);
    CHECK_THROWS_AS(static_cast<void>(ModelDocument::read(file)), runtime::InputError);
    CHECK_THROWS_AS(static_cast<void>(ModelDocument::read(std::filesystem::temp_directory_path())),
                    runtime::InputError);
    CHECK_THROWS_AS(static_cast<void>(ModelDocument::read("/dev/zero")), runtime::InputError);
}

TEST_CASE("Granite's factors are read, and are 1 where the file leaves them out") {
    const std::string granite = replaced(llama, "{", R"({"model_type": "granite", )");
    const Model plain = from_json(granite);
    CHECK(plain.embedding_factor == 1);
    CHECK(plain.score_factor == 1);
    CHECK(plain.residual_factor == 1);
    CHECK(plain.logit_divisor == 1);
    const Model model =
        from_json(replaced(granite, "{", R"({"embedding_multiplier": 12, "attention_multiplier": 0.0078125,
        "residual_multiplier": 0.22, "logits_scaling": 16, )"));
    CHECK(model.embedding_factor == 12);
    CHECK(model.score_factor == 0.0078125);
    CHECK(model.residual_factor == 0.22);
    CHECK(model.logit_divisor == 16);
    CHECK(model.warnings.empty());
    CHECK(from_json(llama).residual_factor == 0);
    CHECK(error_of(replaced(granite, "{", R"({"residual_multiplier": -1, )")).find("residual_multiplier") !=
          std::string::npos);
}
