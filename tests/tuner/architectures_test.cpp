// Published configurations with the operators that their reference implementations run, written down by hand:
// tests/tuner/architectures/*.json. Operators that only differ in how the cache is laid out, or in filters of
// sampling, stand there once.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "models/architecture.h"
#include "models/model_document.h"
#include "models/unread_keys.h"
#include "tuner/errors.h"
#include "tuner/models/known_models.h"
#include "tuner/models/workload.h"

using namespace hone;
using namespace hone::models;
using namespace hone::tuner;

namespace {

namespace fs = std::filesystem;

struct Published {
    std::string name;
    nlohmann::json expected;

    [[nodiscard]] std::string config() const { return expected["config"].dump(); }
};

std::vector<Published> published() {
    std::vector<Published> all;
    for (const auto& entry :
         fs::directory_iterator(fs::path(HONE_SOURCE_DIR) / "tests/tuner/architectures")) {
        std::ifstream file(entry.path());
        all.push_back({entry.path().stem().string(), nlohmann::json::parse(file)});
    }
    std::ranges::sort(all, {}, &Published::name);
    return all;
}

Published published(const std::string& name) {
    for (Published& one : published()) {
        if (one.name == name) return one;
    }
    FAIL("no such file: " << name);
    return {};
}

Model model_of(const std::string& config) {
    return model_from(ModelDocument::from_json(config, "config.json"), "test");
}

/// With another value of a key, or without it where the value is "absent".
std::string changed(const Published& one, const std::string& key, const nlohmann::json& value) {
    nlohmann::json config = one.expected["config"];
    nlohmann::json& object = config.contains("text_config") ? config["text_config"] : config;
    if (value == "absent")
        object.erase(key);
    else
        object[key] = value;
    return config.dump();
}

/// "32 linear bias=no in=4096 ...", the fields without dtype in the order of their names.
std::string line_of(const std::string& family, const std::string& fields, std::int64_t count) {
    std::istringstream words(fields);
    std::set<std::string> sorted;
    for (std::string word; words >> word;) {
        if (!word.starts_with("dtype=")) sorted.insert(word);
    }
    std::string line = std::to_string(count) + ' ' + family;
    for (const std::string& word : sorted) line += ' ' + word;
    return line;
}

using Lines = std::multiset<std::string>;

Lines lines_of(const std::vector<ModelOperator>& operators) {
    Lines lines;
    for (const ModelOperator& op : operators) {
        if (op.use == Use::all) lines.insert(line_of(op.family, op.fields, op.count));
    }
    return lines;
}

Lines lines_of(const nlohmann::json& operators) {
    Lines lines;
    for (const nlohmann::json& op : operators)
        lines.insert(line_of(op["family"], op.value("fields", ""), op["count"]));
    return lines;
}

std::string joined(const Lines& lines) {
    std::string text;
    for (const std::string& line : lines) text += "\n  " + line;
    return text;
}

Lines only_in(const Lines& left, const Lines& right) {
    Lines difference;
    std::ranges::set_difference(left, right, std::inserter(difference, difference.end()));
    return difference;
}

Lines lines_of(const std::string& config) {
    return lines_of(operators(model_of(config), {.tokens = {16}, .dtype = {}}));
}

bool has(const Lines& lines, const std::string& part) {
    return std::ranges::any_of(lines,
                               [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

std::string error_of(const std::string& config) {
    try {
        static_cast<void>(model_of(config));
    } catch (const runtime::InputError& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("published models run the operators of their reference implementations, and no others") {
    CHECK(published().size() >= 40);
    for (const Published& one : published()) {
        CAPTURE(one.name);
        const Model model = model_of(one.config());
        const Lines found = lines_of(operators(model, {.tokens = {16}, .dtype = {}}));
        const Lines wanted = lines_of(one.expected["operators"]);
        const std::string missing = joined(only_in(wanted, found));
        const std::string too_much = joined(only_in(found, wanted));
        CHECK_MESSAGE(missing.empty(), "not there:", missing);
        CHECK_MESSAGE(too_much.empty(), "too much:", too_much);
        CHECK(name(model.dtype) == one.expected["dtype"].get<std::string>());
    }
}

TEST_CASE("of published models every key is read or harmless, but for those that are warned of") {
    for (const Published& one : published()) {
        CAPTURE(one.name);
        const ModelDocument document = ModelDocument::from_json(one.config(), "config.json");
        const Keys keys(document);
        static_cast<void>(read_architecture(architecture_of(keys), keys));
        keys.skip({"torch_dtype", "dtype"});
        CHECK(doubtful_keys(keys) == one.expected["unread"].get<std::vector<std::string>>());
        const Model model = model_of(one.config());
        REQUIRE(model.warnings.size() == (one.expected["unread"].empty() ? 0 : 1));
        for (const nlohmann::json& key : one.expected["unread"])
            CHECK(model.warnings[0].find(key.get<std::string>()) != std::string::npos);
    }
}

TEST_CASE("known models are the published ones, and there are thirty") {
    CHECK(known_models().size() >= 30);
    std::size_t compared = 0;
    for (const std::string& name : known_models()) {
        CAPTURE(name);
        const Model model = read_model(name);
        CHECK(model.warnings.empty());
        CHECK_FALSE(model.architecture.empty());
        if (!fs::exists(fs::path(HONE_SOURCE_DIR) / "tests/tuner/architectures" / (name + ".json"))) continue;
        ++compared;
        CHECK(lines_of(operators(model, {.tokens = {16}, .dtype = {}})) ==
              lines_of(published(name).expected["operators"]));
    }
    CHECK(compared >= 24);
}

TEST_CASE("the problems of published models are valid, and its layers add up") {
    for (const Published& one : published()) {
        CAPTURE(one.name);
        const Model model = model_of(one.config());
        const Workload workload = model_workload(model, {.tokens = {1, 64}, .dtype = {}});
        CHECK_FALSE(workload.problems.empty());
        std::int64_t layers = 0;
        for (const LayerGroup& group : layer_groups(model)) layers += group.count;
        CHECK(layers == model.num_hidden_layers);
        std::set<std::string> roles;
        for (const ModelOperator& op : operators(model, {})) CHECK(roles.insert(op.role).second);
    }
}

TEST_CASE("a model_type that is not in the table is refused by name, with what to do") {
    struct Case {
        const char* type;
        const char* expected;
    };
    const Case cases[] = {{"vit", "patches take the place of tokens"},
                          {"whisper", "cross-attention"},
                          {"t5", "relative positions"},
                          {"mamba", "state spaces"},
                          {"lama", "did you mean 'llama'?"},
                          {"brand_new", "hone tune --op"}};
    for (const Case& one : cases) {
        CAPTURE(one.type);
        // All keys that a Llama has, which once was enough to be taken for one.
        const std::string error = error_of(changed(published("llama-3-8b"), "model_type", one.type));
        CHECK_MESSAGE(error.find(std::string("model_type is '") + one.type + '\'') != std::string::npos,
                      error);
        CHECK_MESSAGE(error.find(one.expected) != std::string::npos, error);
        CHECK(error.find("gemma3_text") != std::string::npos);
        CHECK(error.starts_with("config.json:1: "));
    }
    CHECK(error_of(changed(published("llama-3-8b"), "model_type", 3))
              .find("model_type is 3, allowed is a text") != std::string::npos);
    CHECK(error_of(changed(published("gemma-3-4b"), "model_type", "whisper")).find("'whisper'") !=
          std::string::npos);
}

TEST_CASE("values that make layers of which the table knows nothing are refused") {
    struct Case {
        const char* model;
        const char* key;
        nlohmann::json value;
        const char* expected;
    };
    const std::vector<Case> cases{
        {"gpt2", "add_cross_attention", true, "add_cross_attention has to be false"},
        {"bert-base", "position_embedding_type", "relative_key", "has to be absolute"},
        {"bert-base", "is_decoder", true, "is_decoder has to be false"},
        {"opt-6.7b", "do_layer_norm_before", false, "do_layer_norm_before has to be true"},
        {"opt-6.7b", "word_embed_proj_dim", 512, "word_embed_proj_dim is 512"},
        {"starcoder2-7b", "norm_type", "rms", "norm_type has to be layer_norm"},
        {"deepseek-v3", "moe_layer_freq", 2, "moe_layer_freq has to be 1"},
        {"gemma-3-1b", "use_bidirectional_attention", true, "use_bidirectional_attention has to be false"},
        {"llama-3-8b", "layer_types", {"full_attention"}, "layer_types has 1 entries for 32 layers"},
        {"llama-3-8b", "layer_types", nlohmann::json(32, "linear_attention"), "linear_attention"},
        {"llama-3-8b", "layer_types", nlohmann::json(32, "sliding_attention"), "sliding_attention"},
        {"llama-3-8b", "num_hidden_layers", 70000, "allowed is 1 to 65536"},
        {"qwen3-30b-a3b", "num_experts", "absent", "num_experts is missing"},
        {"deepseek-v3", "first_k_dense_replace", "absent", "first_k_dense_replace is missing"},
        {"deepseek-v3", "n_shared_experts", "absent", "n_shared_experts is missing"},
        {"qwen1.5-moe-a2.7b", "use_sliding_window", true, "use_sliding_window has to be false"},
        {"qwen3-30b-a3b", "mlp_only_layers", {48}, "mlp_only_layers has layer 48 of 48"},
        {"qwen3-30b-a3b", "moe_intermediate_size", "absent", "moe_intermediate_size is missing"},
        {"llama-4-scout", "no_rope_layers", {1, 0}, "no_rope_layers has 2 entries for 48 layers"},
        {"gpt-j-6b", "rotary_dim", 512, "rotary_dim is 512"},
    };
    for (const Case& one : cases) {
        CAPTURE(one.key);
        const std::string error = error_of(changed(published(one.model), one.key, one.value));
        CHECK_MESSAGE(error.find(one.expected) != std::string::npos, error);
        CHECK(error.starts_with("config.json"));
    }
}

TEST_CASE("windows are where the reference has them") {
    CHECK(has(lines_of(published("gemma-2-9b").config()), "21 attention_prefill"));
    const Lines gemma3 = lines_of(published("gemma-3-1b").config());
    CHECK(has(gemma3, "22 attention_prefill"));
    CHECK(has(gemma3, "window=512"));
    // Each layer's own word holds where a file has them.
    nlohmann::json types(26, "sliding_attention");
    types[0] = "full_attention";
    CHECK(has(lines_of(changed(published("gemma-3-1b"), "layer_types", types)), "25 attention_decode"));
    // A file that leaves the pattern out has every sixth layer see all tokens, and an old name of the key
    // counts.
    CHECK(lines_of(changed(published("gemma-3-1b"), "sliding_window_pattern", "absent")) == gemma3);
    // Qwen 2 has windows from a layer on, where it has any.
    nlohmann::json qwen = published("qwen2-7b").expected["config"];
    qwen["use_sliding_window"] = true;
    qwen["max_window_layers"] = 20;
    qwen["sliding_window"] = 4096;
    CHECK(has(lines_of(qwen.dump()), "8 attention_prefill"));
    CHECK(has(lines_of(qwen.dump()), "20 attention_prefill"));
    // Nor where no text is longer than it.
    qwen["sliding_window"] = qwen["max_position_embeddings"];
    CHECK(has(lines_of(qwen.dump()), "28 attention_prefill"));
    CHECK(has(lines_of(changed(published("mistral-7b"), "sliding_window", 32767)), "window=32767"));
    CHECK_FALSE(has(lines_of(changed(published("mistral-7b"), "sliding_window", 32768)), "window=32768"));
    // null is no window, whatever a file without the key has.
    CHECK_FALSE(has(lines_of(changed(published("mistral-7b"), "sliding_window", nullptr)), "window=4096"));
    CHECK(has(lines_of(changed(published("mistral-7b"), "sliding_window", "absent")), "window=4096"));
}

TEST_CASE("experts are in the layers that have them") {
    const Published qwen = published("qwen3-30b-a3b");
    CHECK(has(lines_of(changed(qwen, "mlp_only_layers", {0, 1})), "46 expert_linear combine=yes"));
    CHECK(has(lines_of(changed(qwen, "mlp_only_layers", {0, 1})), "2 linear activation=silu"));
    CHECK(has(lines_of(changed(qwen, "decoder_sparse_step", 2)), "24 expert_linear combine=yes"));
    CHECK(has(lines_of(changed(published("llama-4-scout"), "moe_layers", {3})), "1 fused_moe"));
    CHECK(has(lines_of(changed(published("deepseek-v3"), "first_k_dense_replace", 0)), "61 expert_linear"));
    const std::vector<ModelOperator> list = operators(model_of(qwen.config()), {});
    const auto experts = std::ranges::find(list, "gate and up of experts", &ModelOperator::role);
    REQUIRE(experts != list.end());
    CHECK(experts->shape == "2048 -> 768, 128 experts, 8 a token");
}

TEST_CASE(
    "experts are tuned at the model's token counts, with its routing, and with codes where other layers have "
    "them") {
    const Published qwen = published("qwen3-30b-a3b");
    const Workload workload = model_workload(model_of(qwen.config()), {.tokens = {1, 64}});
    std::map<std::string_view, int> problems;
    for (const Problem& problem : workload.problems) ++problems[problem.family->name];
    CHECK(problems["expert_routing"] == 2);
    CHECK(problems["expert_linear"] == 4);
    CHECK(workload.without_family.empty());
    CHECK(has(lines_of(changed(qwen, "norm_topk_prob", false)), "expert_routing experts=128 renormalize=no"));
    CHECK(has(lines_of(changed(qwen, "norm_topk_prob", "absent")), "renormalize=no"));
    CHECK(error_of(changed(qwen, "num_experts_per_tok", 129)) ==
          "config.json:1: num_experts_per_tok is 129, allowed is 1 to 128, as many as there are experts");
    const Workload two = model_workload(model_of(qwen.config()), {.tokens = {1}, .tensor_parallel = 2});
    CHECK(std::ranges::any_of(two.problems, [](const Problem& problem) {
        return to_string(problem).find("combine=yes experts=128 top_k=8 in=384 out=2048") !=
               std::string::npos;
    }));
    const Workload codes =
        model_workload(model_of(qwen.config()),
                       {.tokens = {1}, .weights = checkpoints::WeightFormat{.format = QuantFormat::fp8}});
    CHECK(codes.without_family.empty());
    problems.clear();
    for (const Problem& problem : codes.problems) ++problems[problem.family->name];
    CHECK(problems["expert_linear"] == 0);
    CHECK(problems["quantized_expert_linear"] == 2);
    CHECK(std::ranges::any_of(codes.problems, [](const Problem& problem) {
        return to_string(problem) ==
               "quantized_expert_linear dtype=bf16 format=fp8 group=0 zeros=no activation=silu gated=yes "
               "bias=no "
               "gather=yes combine=no experts=128 top_k=8 in=2048 out=768 tokens=1";
    }));
    CHECK(std::ranges::any_of(codes.problems, [](const Problem& problem) {
        return to_string(problem).find("linear dtype=bf16 norm=no") == 0;  // the router keeps numbers
    }));
}

TEST_CASE("what a switch turns off is not there") {
    CHECK_FALSE(has(lines_of(changed(published("llama-4-scout"), "use_qk_norm", false)), "hidden=128"));
    CHECK_FALSE(has(lines_of(changed(published("llama-4-scout"), "attn_temperature_tuning", 0)), "12 scale"));
    CHECK_FALSE(
        has(lines_of(changed(published("llama-4-scout"), "attention_chunk_size", nullptr)), "chunked"));
    CHECK(has(lines_of(changed(published("starcoder"), "multi_query", false)), "kv_heads=48"));
    CHECK(has(lines_of(changed(published("stablelm-3b-4e1t"), "use_qkv_bias", true)),
              "bias=yes gated=no in=2560 out=7680"));
    CHECK(
        has(lines_of(changed(published("stablelm-3b-4e1t"), "use_parallel_residual", true)), "31 layernorm"));
    CHECK(has(lines_of(changed(published("stablelm-3b-4e1t"), "qk_layernorm", true)), "32 headnorm"));
    CHECK(has(lines_of(changed(published("command-r"), "use_qk_norm", true)), "40 headnorm"));
    CHECK(has(lines_of(changed(published("pythia-6.9b"), "use_parallel_residual", false)), "63 layernorm"));
    CHECK(has(lines_of(changed(published("falcon-7b"), "alibi", true)), "attention_alibi"));
    CHECK(has(lines_of(changed(published("falcon-7b"), "parallel_attn", false)), "63 layernorm"));
    CHECK(has(lines_of(changed(published("falcon-7b"), "multi_query", false)), "kv_heads=71"));
    CHECK(has(lines_of(changed(published("olmo-7b"), "clip_qkv", 8.0)), "32 clip"));
    CHECK_FALSE(
        has(lines_of(changed(published("gemma-2-9b"), "attn_logit_softcapping", nullptr)), "softcap=yes"));
    CHECK(has(lines_of(changed(published("gemma-2-9b"), "attn_logit_softcapping", "absent")), "softcap=yes"));
    CHECK_FALSE(has(lines_of(changed(published("bert-base"), "architectures", {"BertModel"})), "out=30522"));
}

TEST_CASE("a key that is not read is warned of by its name, harmless ones are not") {
    const auto warnings = [](const std::string& key, const nlohmann::json& value) {
        return model_of(changed(published("llama-3-8b"), key, value)).warnings;
    };
    for (const char* key : {"qk_norm", "use_moe", "num_local_experts", "sliding_window", "kv_lora_rank",
                            "hybrid_layer_pattern", "ssm_cfg", "is_decoder"}) {
        CAPTURE(key);
        const std::vector<std::string> said = warnings(key, 4);
        REQUIRE(said.size() == 1);
        CHECK(said[0].find(key) != std::string::npos);
    }
    for (const char* key : {"_name_or_path", "sep_token_id", "hidden_dropout_prob", "top_p", "id2label"}) {
        CAPTURE(key);
        CHECK(warnings(key, 4).empty());
    }
    CHECK(warnings("is_encoder_decoder", false).empty());
    CHECK(warnings("is_encoder_decoder", true).size() == 1);
    CHECK(warnings("sliding_window", nullptr).empty());
    nlohmann::json many = published("llama-3-8b").expected["config"];
    for (int i = 0; i < 100; ++i) many["unknown_" + std::to_string(i)] = i;
    CHECK(model_of(many.dump()).warnings[0].find("and 80 more") != std::string::npos);
}

TEST_CASE("a file without model_type is read by its keys, and says so") {
    const Model model = model_of(changed(published("llama-3-8b"), "model_type", "absent"));
    REQUIRE(model.warnings.size() == 1);
    CHECK(model.warnings[0].find("no model_type") != std::string::npos);
    CHECK(lines_of(operators(model, {.tokens = {16}, .dtype = {}})) ==
          lines_of(published("llama-3-8b").config()));
}

TEST_CASE("every entry of the table has a name of its own, words, and reads its own published model") {
    std::set<std::string> types;
    for (const Architecture& architecture : architectures()) {
        CHECK(types.insert(std::string(architecture.model_type)).second);
        CHECK_FALSE(architecture.says.empty());
    }
    std::set<std::string> covered;
    for (const Published& one : published()) covered.insert(model_of(one.config()).architecture);
    CHECK(covered.size() >= 40);
}

TEST_CASE("docs/models.md names every model_type") {
    std::ifstream file(fs::path(HONE_SOURCE_DIR) / "docs/models.md");
    std::ostringstream text;
    text << file.rdbuf();
    for (const Architecture& architecture : architectures()) {
        const std::string words = fmt::format("`{}` ({})", architecture.model_type, architecture.says);
        CAPTURE(words);
        CHECK(text.str().find(words) != std::string::npos);
    }
}
