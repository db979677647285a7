// hone model from the outside: what was understood of a file, what has no kernel, what is refused.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/program.h"

using namespace hone::test;

namespace {

namespace fs = std::filesystem;

std::string config_of(const std::string& name) {
    std::ifstream file(fs::path(HONE_SOURCE_DIR) / "tests/tuner/architectures" / (name + ".json"));
    return nlohmann::json::parse(file)["config"].dump();
}

std::string changed(const std::string& name, const std::string& key, const nlohmann::json& value) {
    nlohmann::json config = nlohmann::json::parse(config_of(name));
    config[key] = value;
    return config.dump();
}

bool has_word(const std::string& text, const std::string& word) {
    return text.find(word) != std::string::npos;
}

}  // namespace

TEST_CASE("a model is one screen of 80 columns, whatever it is") {
    Sandbox sandbox;
    sandbox.set("COLUMNS", "80");
    const std::string long_name =
        "a_folder_with_a_name_that_is_rather_long/of_a_model_with_an_equally_long_name";
    fs::create_directories(sandbox.path(long_name));
    for (const auto& entry :
         fs::directory_iterator(fs::path(HONE_SOURCE_DIR) / "tests/tuner/architectures")) {
        const std::string file = long_name + "/" + entry.path().filename().string();
        sandbox.write(file, config_of(entry.path().stem().string()));
        CAPTURE(file);
        const Ended ended = sandbox.run({"model", file});
        REQUIRE(ended.code == 0);
        const std::vector<std::string> lines = lines_of(ended.out);
        for (const std::string& line : lines) {
            CAPTURE(line);
            CHECK(columns_of(line) <= 80);
        }
        CHECK(lines.size() <= 40);
    }
}

TEST_CASE("the table has layers by kind, and says what has no kernel") {
    Sandbox sandbox;
    const Ended gemma = sandbox.run({"model", "gemma-3-1b"});
    CHECK(has_word(gemma.out, "Gemma 3 (model_type gemma3_text), decoder, bf16: gemma-3-1b"));
    CHECK(has_word(gemma.out, "      22  window 512"));
    CHECK(has_word(gemma.out, "       4  all tokens"));
    CHECK(has_word(gemma.out, "Hone has a kernel for every operator."));
    CHECK(gemma.err.empty());
    const Ended oss = sandbox.run({"model", "gpt-oss-20b"});
    CHECK(has_word(oss.out, "gate and up of experts"));
    CHECK(has_word(oss.out, "Hone has a kernel for every operator."));
    CHECK(has_word(sandbox.run({"model", "llama-4-scout"}).out, "No kernel for:\n"));
    const nlohmann::json data = sandbox.run({"model", "gpt-oss-20b", "--json"}).json()["data"];
    CHECK(data["model_type"] == "gpt_oss");
    CHECK(data["kind"] == "decoder");
    CHECK(data["layers"].size() == 2);
    CHECK(data["layers"][0]["window"] == 128);
    CHECK(data["warnings"].empty());
    for (const nlohmann::json& op : data["operators"]) {
        CHECK(op["kernel"] == !op["fields"].is_null());
        if (op["role"] == "down of experts") CHECK(op["count"] == 24);
    }
}

TEST_CASE("without a model the known ones are listed") {
    const Sandbox sandbox;
    CHECK(has_word(sandbox.run({"model"}).out, "gemma-2-9b\n"));
    CHECK(sandbox.run({"model", "--json"}).json()["data"]["known_models"].size() >= 30);
}

TEST_CASE("a GPU's part of a model, another dtype, weights of 4 bits") {
    const Sandbox sandbox;
    const auto text = [&](Sandbox::Words words) {
        words.insert(words.begin(), {"model", "llama-3-8b"});
        return sandbox.run(words).out;
    };
    CHECK(has_word(text({"--tp", "4"}), "4096 -> 1536"));
    CHECK(has_word(text({"--dtype", "fp16"}), "decoder, fp16"));
    CHECK(has_word(text({"--format", "w4a16"}), "quantized_linear"));
}

TEST_CASE("an unknown model_type is refused with its name, and an unknown key warned of") {
    const Sandbox sandbox;
    sandbox.write("vit.json", changed("llama-3-8b", "model_type", "vit"));
    for (const char* command : {"model", "tune", "compile"}) {
        Sandbox::Words words{command, "vit.json"};
        if (words[0] == "compile") words.insert(words.end(), {"--arch", "sm_90a"});
        const Ended ended = sandbox.run(words);
        CHECK(ended.code == 2);
        CHECK(ended.out.empty());
        CHECK(has_word(ended.err,
                       "model_type is 'vit' (an encoder of images: patches take the place of tokens)"));
        CHECK(has_word(ended.err, "hone tune --op"));
    }
    sandbox.write("odd.json", changed("llama-3-8b", "hybrid_ratio", 3));
    const Ended odd = sandbox.run({"model", "odd.json"});
    CHECK(odd.code == 0);
    CHECK(has_word(odd.err, "warning: odd.json: not read: hybrid_ratio"));
    CHECK(
        has_word(sandbox.run({"model", "odd.json", "--json"}).json()["data"]["warnings"][0], "hybrid_ratio"));
    sandbox.write("bare.json", R"({"hidden_size":64,"intermediate_size":128,"num_attention_heads":4,
        "num_hidden_layers":2,"vocab_size":100,"rms_norm_eps":1e-5})");
    CHECK(has_word(sandbox.run({"model", "bare.json"}).err, "bare.json: no model_type: read by its keys"));
}

TEST_CASE("tune warns of what has no kernel and tunes the rest") {
    const Sandbox sandbox;
    sandbox.write("oss.json", changed("gpt-oss-20b", "quantization_config", {{"quant_method", "mxfp4"}}));
    const Ended dense = sandbox.run({"tune", "oss.json", "--dry-run", "--tokens", "16"});
    CHECK(dense.code == 0);
    CHECK(
        has_word(dense.out, "expert_linear dtype=bf16 activation=swiglu_oai gated=yes bias=yes gather=yes"));
    CHECK(has_word(
        dense.out,
        "attention_decode dtype=bf16 kv_dtype=same causal=yes window=128 softcap=no lse=no sinks=yes"));
    CHECK(has_word(dense.out, "in=2880 out=5120"));
    const nlohmann::json json = sandbox.run({"tune", "oss.json", "--dry-run", "--json"}).json();
    CHECK(json["data"]["without_family"].empty());
    const Ended scout = sandbox.run({"tune", "llama-4-scout", "--dry-run", "--tokens", "16"});
    CHECK(scout.code == 0);
    CHECK(has_word(scout.err, "experts (fused_moe), 48 a forward pass"));
}
