#include "tuner/models/workload.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "hone/quantized_linear.h"
#include "runtime/operators/feed_forward.h"
#include "runtime/operators/quantized_linear.h"
#include "tuner/errors.h"
#include "tuner/models/known_models.h"

using namespace hone;
using namespace hone::tuner;

namespace {

using Texts = std::vector<std::string>;

const ModelOperator& by_role(const std::vector<ModelOperator>& list, const std::string& role) {
    const auto found =
        std::find_if(list.begin(), list.end(), [&](const ModelOperator& op) { return op.role == role; });
    REQUIRE(found != list.end());
    return *found;
}

/// Above 256 also between powers of two.
std::vector<std::int64_t> tokens_of_linear_layers() {
    std::vector<std::int64_t> tokens{320, 384, 448, 640, 768, 896, 1280, 1536, 1792};
    for (const std::int64_t edge : bucket_edges(8192)) tokens.push_back(edge);
    return tokens;
}

std::size_t problems_of(const Workload& workload, std::string_view family) {
    return static_cast<std::size_t>(std::ranges::count(
        workload.problems, family, [](const Problem& problem) { return problem.family->name; }));
}

}  // namespace

TEST_CASE("a transformer's norms: the first one plain, all others after a residual") {
    const std::vector<ModelOperator> list = operators(read_model("llama-3-8b"), {});
    CHECK(by_role(list, "first norm").fields == "dtype=bf16 residual=no hidden=4096");
    CHECK(by_role(list, "first norm").count == 1);
    CHECK(by_role(list, "norm after residual").fields == "dtype=bf16 residual=yes hidden=4096");
    CHECK(by_role(list, "norm after residual").count == 63);
    CHECK(by_role(list, "final norm").count == 1);
    CHECK(by_role(list, "query, key, value projection").shape == "4096 -> 6144");
    CHECK(by_role(list, "language head").shape == "4096 -> 128256");
}

TEST_CASE("a transformer's linear layers: the feed-forward network is two halves, the first one gated") {
    const std::vector<ModelOperator> llama = operators(read_model("llama-3-8b"), {});
    CHECK(by_role(llama, "feed-forward, first half").fields ==
          "dtype=bf16 activation=silu gated=yes bias=no in=4096 out=14336");
    CHECK(by_role(llama, "feed-forward, second half").fields ==
          "dtype=bf16 activation=none gated=no bias=no in=14336 out=4096");
    const std::vector<ModelOperator> gpt2 = operators(read_model("gpt2"), {});
    CHECK(by_role(gpt2, "feed-forward, first half").fields ==
          "dtype=fp16 activation=gelu_tanh gated=no bias=yes in=768 out=3072");
    CHECK(by_role(gpt2, "output projection").fields.find("bias=yes") != std::string::npos);
    const std::vector<ModelOperator> qwen = operators(read_model("qwen2.5-7b"), {});
    CHECK(by_role(qwen, "query, key, value projection").fields.find("bias=yes") != std::string::npos);
    CHECK(by_role(qwen, "output projection").fields.find("bias=no") != std::string::npos);
}

TEST_CASE("a gated feed-forward network with biases is not tuned: no operator has both") {
    Model model = read_model("llama-3-8b");
    model.ffn_bias = true;
    CHECK(by_role(operators(model, {}), "feed-forward, first half").fields.empty());
    CHECK(by_role(operators(model, {}), "feed-forward, second half").fields.empty());
}

TEST_CASE(
    "what a model's quantized layers look up at run time is in its workload, and nothing else but what steps "
    "of the decoder do") {
    struct Case {
        const char* model;
        checkpoints::WeightFormat weights;
        int tensor_parallel = 1;
    };
    const Case cases[] = {{"llama-3-8b", {.format = QuantFormat::w4a16, .group = 128}},
                          {"llama-3-8b", {.format = QuantFormat::w4a16, .group = 32, .zeros = true}, 2},
                          {"llama-2-13b", {.format = QuantFormat::w8a16}},
                          {"qwen2.5-7b", {.format = QuantFormat::w8a8}},
                          {"mistral-7b", {.format = QuantFormat::fp8, .group = 128}, 8},
                          {"gpt2", {.format = QuantFormat::w4a16, .group = 64}}};
    for (const Case& one : cases) {
        CAPTURE(one.model);
        const Model model = read_model(one.model);
        const auto heads = model.num_attention_heads / one.tensor_parallel;
        const auto kv_heads = model.num_key_value_heads / one.tensor_parallel;
        const auto [format, group, zeros, lm_head] = one.weights;
        std::set<std::string> wanted;
        for (const std::int64_t tokens : tokens_of_linear_layers()) {
            QuantizedLinear linear{.in = model.hidden_size,
                                   .out = (heads + 2 * kv_heads) * model.head_dim,
                                   .max_tokens = tokens,
                                   .dtype = model.dtype,
                                   .format = *format,
                                   .group = group,
                                   .zeros = zeros,
                                   .bias = model.qkv_bias};
            wanted.insert(to_string(runtime::problem_of(linear)));
            linear.in = heads * model.head_dim;
            linear.out = model.hidden_size;
            linear.bias = model.output_bias;
            wanted.insert(to_string(runtime::problem_of(linear)));
            const QuantizedFfn ffn{
                .hidden = model.hidden_size,
                .intermediate = model.intermediate_size / one.tensor_parallel,
                .max_tokens = tokens,
                .dtype = model.dtype,
                .format = *format,
                .group = group,
                .zeros = zeros,
                .activation = model.gated_ffn ? Activation::silu : Activation::gelu_tanh,
                .gated = model.gated_ffn,
                .bias = model.ffn_bias,
            };
            wanted.insert(to_string(runtime::first_half(ffn)));
            wanted.insert(to_string(runtime::second_half(ffn)));
        }
        const Workload workload = model_workload(
            model,
            {.tokens = {}, .dtype = {}, .tensor_parallel = one.tensor_parallel, .weights = one.weights});
        std::set<std::string> found;
        for (const Problem& problem : workload.problems) {
            const std::string text = to_string(problem);
            const bool is_of_steps = text.find("norm=yes") != text.npos ||
                                     text.find("residual=yes") != text.npos ||
                                     text.find("quantized_x=yes") != text.npos;
            if (text.starts_with("quantized_linear ")) {
                if (is_of_steps) {
                    CHECK(one.tensor_parallel == 1);
                } else {
                    found.insert(text);
                }
            }
            if (text.starts_with("linear "))
                CHECK(text.find("in=" + std::to_string(model.hidden_size)) != text.npos);
        }
        CHECK(found == wanted);
    }
}

TEST_CASE("the language head of a quantized model has numbers, unless asked for; all else stays") {
    const Model model = read_model("llama-3-8b");
    WorkloadOptions options{.tokens = {1, 512}, .dtype = {}};
    const Workload dense = model_workload(model, options);
    options.weights = checkpoints::WeightFormat{.format = QuantFormat::w4a16, .group = 128};
    const Workload codes = model_workload(model, options);
    const auto family_of = [](const Workload& workload, const std::string& role) {
        const auto found = std::ranges::find(workload.tuned, role, &TunedOperator::role);
        REQUIRE(found != workload.tuned.end());
        return found->problem.family->name;
    };
    CHECK(family_of(codes, "language head") == "linear");
    CHECK(family_of(codes, "output projection") == "quantized_linear");
    CHECK(codes.problems.size() == dense.problems.size());
    const auto others = [](const Workload& workload) {
        std::set<std::string> texts;
        for (const Problem& problem : workload.problems) {
            const std::string text = to_string(problem);
            if (text.find("linear ") == std::string::npos) texts.insert(text);
        }
        return texts;
    };
    CHECK(others(codes) == others(dense));
    options.weights->lm_head = true;
    CHECK(family_of(model_workload(model, options), "language head") == "quantized_linear");
}

TEST_CASE("weights that no kernel takes are refused with the layer they are of") {
    const auto refused = [](const char* name, const WorkloadOptions& options, const char* text) {
        CHECK_THROWS_WITH_AS(static_cast<void>(model_workload(read_model(name), options)),
                             doctest::Contains(text), ConfigError);
    };
    const checkpoints::WeightFormat w4{.format = QuantFormat::w4a16, .group = 128};
    refused("llama-2-7b", {.tokens = {1}, .dtype = {}, .tensor_parallel = 4, .weights = w4},
            "llama-2-7b: feed-forward, second half (2752 -> 4096): group=128 does not divide in=2752");
    refused("llama-2-7b", {.tokens = {1}, .dtype = Dtype::fp32, .weights = w4}, "allowed: fp16, bf16");
    refused("gpt2",
            {.tokens = {1},
             .dtype = {},
             .weights = checkpoints::WeightFormat{.format = QuantFormat::w8a16, .group = 64}},
            "codes of 8 bits have a scale a row");
}

TEST_CASE("a model whose file says how it is quantized is tuned so, unless something else is asked for") {
    Model model = read_model("llama-3-8b");
    model.quantization.emplace(nlohmann::json{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 64}},
                               "config.json: quantization_config");
    const std::string projection = "query, key, value projection";
    CHECK(by_role(operators(model, {}), projection).fields.find("format=w4a16 group=64 zeros=yes") !=
          std::string::npos);
    CHECK(by_role(operators(model, {.tokens = {}, .dtype = {}, .weights = checkpoints::WeightFormat{}}),
                  projection)
              .family == "linear");
    model.quantization.emplace(nlohmann::json{{"quant_method", "bitsandbytes"}},
                               "config.json: quantization_config");
    CHECK_THROWS_WITH_AS(static_cast<void>(operators(model, {})),
                         doctest::Contains("quant_method is \"bitsandbytes\"; allowed: gptq, awq, fp8, "
                                           "compressed-tensors, modelopt, hone; --format w4a16, w8a16"),
                         ConfigError);
    CHECK(by_role(operators(model, {.tokens = {}, .dtype = {}, .weights = checkpoints::WeightFormat{}}),
                  projection)
              .family == "linear");
}

TEST_CASE("the language head sees a row a sequence, not a row a token") {
    const Workload workload = model_workload(read_model("llama-3-8b"), {});
    std::int64_t most = 0;
    for (const Problem& problem : workload.problems) {
        if (to_string(problem).find("out=128256") == std::string::npos) continue;
        most = std::max(most, problem[dynamic_fields(*problem.family)[0]]);
    }
    CHECK(most == 512);
}

TEST_CASE("tokens are looked up and drawn: at few sizes, or at those that are asked for") {
    const std::vector<ModelOperator> llama = operators(read_model("llama-3-8b"), {});
    const ModelOperator& embedding = by_role(llama, "token embedding");
    CHECK(embedding.fields == "dtype=bf16 index=int32 scale=no positions=no hidden=4096");
    CHECK(embedding.sizes == Texts{"tokens=1", "tokens=16", "tokens=128", "tokens=1024", "tokens=8192"});
    const ModelOperator& plain = by_role(llama, "sampling");
    CHECK(plain.fields == "dtype=bf16 filters=no log_probability=no vocabulary=128256");
    CHECK(plain.sizes == Texts{"rows=1", "rows=4", "rows=16", "rows=64", "rows=256"});
    CHECK(by_role(llama, "sampling, filters").fields ==
          "dtype=bf16 filters=yes log_probability=no vocabulary=128256");

    const std::vector<ModelOperator> gpt2 =
        operators(read_model("gpt2"), {.tokens = {2, 1000}, .dtype = Dtype::fp32});
    CHECK(by_role(gpt2, "token embedding").fields ==
          "dtype=fp32 index=int32 scale=no positions=yes hidden=768");
    CHECK(by_role(gpt2, "token embedding").sizes == Texts{"tokens=2", "tokens=1000"});
    CHECK(by_role(gpt2, "sampling").sizes == Texts{"rows=2", "rows=512"});  // a row a sequence
}

TEST_CASE("every GPU of several looks up whole rows and draws from the whole vocabulary") {
    const std::vector<ModelOperator> list =
        operators(read_model("llama-3-8b"), {.tokens = {}, .dtype = {}, .tensor_parallel = 4});
    CHECK(by_role(list, "token embedding").shape == "hidden 4096");
    CHECK(by_role(list, "sampling").shape == "vocabulary 128256");
    Model many = read_model("llama-3-8b");
    many.vocab_size = (std::int64_t{1} << 20) + 1;
    CHECK(by_role(operators(many, {}), "sampling").fields.empty());
}

TEST_CASE("an embedding and a sampler are tuned one by one, too") {
    CHECK(operator_workload("embedding", "dtype=bf16 hidden=4096", {.tokens = {1, 16}, .dtype = {}})
              .problems.size() == 2);
    const Workload sample =
        operator_workload("sample", "dtype=bf16 vocabulary=128256 filters=yes rows=4", {});
    REQUIRE(sample.problems.size() == 1);
    CHECK(to_string(sample.problems[0]) ==
          "sample dtype=bf16 filters=yes log_probability=no vocabulary=128256 rows=4");
}

TEST_CASE("a workload says whom its problems are for") {
    const Workload workload = model_workload(read_model("llama-3-8b"), {});
    std::set<std::string> roles;
    for (const TunedOperator& op : workload.tuned) {
        roles.insert(op.role);
        CHECK(std::ranges::find(workload.problems, op.problem) != workload.problems.end());
    }
    CHECK(roles.contains("output projection"));
    CHECK(roles.contains("attention over one token, paged cache"));
    CHECK(roles.size() == workload.tuned.size());
}

TEST_CASE("attention over prompts is tuned for one sequence, up to what the model knows") {
    const ModelOperator llama =
        by_role(operators(read_model("llama-3-8b"), {.tokens = {1, 16, 512, 100'000}, .dtype = {}}),
                "attention over a prompt");
    CHECK(llama.family == "attention_prefill");
    CHECK(llama.fields ==
          "dtype=bf16 heads=32 kv_heads=8 head_dim=128 causal=yes window=0 softcap=no lengths=none");
    CHECK(llama.sizes == Texts{"batch=1 q_len=512 kv_len=512",
                               "batch=1 q_len=8192 kv_len=8192"});  // few queries are decode's
    const ModelOperator paged =
        by_role(operators(read_model("llama-3-8b"), {}), "attention over a prompt, paged cache");
    CHECK(paged.fields.ends_with("causal=yes window=0 softcap=no lengths=paged page_size=16"));
    CHECK(paged.sizes.size() == 9);
    const ModelOperator mistral = by_role(operators(read_model("mistral-7b"), {}), "attention over a prompt");
    CHECK(mistral.fields.find("window=4096") != std::string::npos);
    CHECK(mistral.sizes.front() == "batch=1 q_len=32 kv_len=32");
    CHECK(mistral.sizes.size() == 9);
}

TEST_CASE("attention over one token is tuned over batches and caches that fit a GPU, in both layouts") {
    const std::vector<ModelOperator> list = operators(read_model("llama-3-8b"), {});
    const ModelOperator& one = by_role(list, "attention over one token");
    CHECK(one.fields ==
          "dtype=bf16 heads=32 kv_heads=8 head_dim=128 causal=no window=0 softcap=no "
          "q_tokens=1 lengths=no page_size=0");
    CHECK(
        by_role(list, "attention over one token, paged cache").fields.ends_with("lengths=yes page_size=16"));
    CHECK(by_role(list, "attention over one token, paged cache").sizes == one.sizes);
    CHECK(one.sizes.front() == "batch=1 kv_len=256 q_len=1");
    CHECK(std::ranges::count(one.sizes, "batch=64 kv_len=8192 q_len=1") == 1);
    CHECK(std::ranges::count(one.sizes, "batch=256 kv_len=8192 q_len=1") == 0);  // 256 GiB in all layers
    CHECK(one.sizes.size() == 18);
}

TEST_CASE("token counts are numbers of sequences for attention over one token") {
    const std::vector<ModelOperator> list =
        operators(read_model("gpt2"), {.tokens = {8, 1, 4096}, .dtype = {}});
    CHECK(by_role(list, "attention over one token").sizes ==
          Texts{"batch=1 kv_len=256 q_len=1", "batch=1 kv_len=1024 q_len=1", "batch=8 kv_len=256 q_len=1",
                "batch=8 kv_len=1024 q_len=1"});
    CHECK(model_workload(read_model("gpt2"), {.tokens = {600}, .dtype = {}}).tuned.size() ==
          3 + 1 + 2 + 5 + 3 + 3);  // the last are look-ups of rows and tokens that are drawn, and appends
}

TEST_CASE("what is rotated: all of a head, a part of it, or nothing where positions are learned") {
    const auto rotation = [](const Model& model) {
        const std::vector<ModelOperator> list = operators(model, {.tokens = {16}, .dtype = {}});
        const auto found = std::ranges::find_if(list, [](const ModelOperator& op) {
            return op.family == "rope_kv_append" && op.use == Use::all;
        });
        return found == list.end() ? std::string() : found->fields + ": " + found->sizes.at(0);
    };
    Model model = read_model("llama-3-8b");
    CHECK(rotation(model) ==
          "dtype=bf16 heads=32 kv_heads=8 head_dim=128 style=half norm=no rotary_dim=128 "
          "slots=no page_size=0: tokens=16");
    model.rotary_dim = 64;
    model.qk_norm = true;
    CHECK(rotation(model).find("norm=yes rotary_dim=64") != std::string::npos);
    CHECK(rotation(read_model("gpt2")).empty());  // steps of the decoder append without a rotation
}

TEST_CASE("attention that no family covers is listed with its shape") {
    Model latent = read_model("llama-3-8b");
    latent.latent_attention = true;
    CHECK(by_role(operators(latent, {}), "latent attention").fields.empty());
    Model wide = read_model("llama-3-8b");
    wide.head_dim = 512;
    CHECK(by_role(operators(wide, {}), "attention over a prompt").fields.empty());
    const Workload workload = model_workload(wide, {.tokens = {64}, .dtype = {}});
    CHECK(workload.without_family.size() == 6);
}

TEST_CASE("tensor parallelism divides heads and feed-forward, not norms") {
    const std::vector<ModelOperator> list =
        operators(read_model("llama-3-8b"), {.tokens = {}, .dtype = {}, .tensor_parallel = 4});
    CHECK(by_role(list, "first norm").fields == "dtype=bf16 residual=no hidden=4096");
    CHECK(by_role(list, "query, key, value projection").shape == "4096 -> 1536");
    CHECK(by_role(list, "output projection").shape == "1024 -> 4096");
    CHECK(by_role(list, "feed-forward, first half").shape == "4096 -> 3584");
    CHECK(by_role(list, "feed-forward, second half").shape == "3584 -> 4096");
    CHECK_THROWS_AS(static_cast<void>(operators(read_model("qwen2.5-7b"),
                                                {.tokens = {}, .dtype = {}, .tensor_parallel = 8})),
                    ConfigError);
    CHECK_THROWS_AS(static_cast<void>(operators(read_model("llama-3-8b"),
                                                {.tokens = {}, .dtype = {}, .tensor_parallel = 0})),
                    ConfigError);
    CHECK_THROWS_AS(static_cast<void>(operators(read_model("llama-3-8b"),
                                                {.tokens = {}, .dtype = {}, .tensor_parallel = -2})),
                    ConfigError);
}

TEST_CASE("a head norm sees tokens times heads rows") {
    Model model = read_model("llama-3-8b");
    model.qk_norm = true;
    const Workload workload = model_workload(model, {.tokens = {2}, .dtype = {}, .tensor_parallel = 2});
    std::set<std::string> problems;
    for (const Problem& problem : workload.problems) problems.insert(to_string(problem));
    CHECK(problems.contains("rmsnorm dtype=bf16 output=same residual=no hidden=128 rows=32"));
    CHECK(problems.contains("rmsnorm dtype=bf16 output=same residual=no hidden=128 rows=8"));
}

TEST_CASE("problems are grouped by static part, ascending, without duplicates") {
    for (const std::string& name : known_models()) {
        CAPTURE(name);
        const Workload workload = model_workload(read_model(name), {});
        CHECK_FALSE(workload.problems.empty());
        std::set<std::string> texts;
        std::set<std::string> finished_parts;
        for (std::size_t i = 0; i < workload.problems.size(); ++i) {
            const Problem& problem = workload.problems[i];
            CHECK(texts.insert(to_string(problem)).second);
            if (i == 0) continue;
            const Problem& before = workload.problems[i - 1];
            if (static_part(before) == static_part(problem)) {
                CHECK(before.values < problem.values);
            } else {
                CHECK(finished_parts.insert(to_string(static_part(before))).second);
                CHECK_FALSE(finished_parts.contains(to_string(static_part(problem))));
            }
        }
    }
}

TEST_CASE("token counts are the buckets up to 8192 unless given; out of range is an error") {
    const Model model = read_model("llama-3-8b");
    // Two norms, four linear layers and two appends to caches; the language head sees up to 512 rows. Steps
    // of one token have products with norms and sums in them, and an append by slots.
    const std::size_t edges = bucket_edges(8192).size();
    const Workload usual = model_workload(model, {});
    CHECK(problems_of(usual, "rmsnorm") == 2 * edges);
    CHECK(problems_of(usual, "linear") ==
          4 * tokens_of_linear_layers().size() + bucket_edges(512).size() + 4);
    CHECK(problems_of(usual, "rope_kv_append") == 2 * edges + 5);
    const Workload asked = model_workload(model, {.tokens = {8, 1, 8}, .dtype = {}});
    CHECK(problems_of(asked, "rmsnorm") == 2 * 2);
    CHECK(problems_of(asked, "linear") == 5 * 2 + 4);
    for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 40}) {
        CHECK_THROWS_AS(static_cast<void>(model_workload(model, {.tokens = {bad}, .dtype = {}})),
                        ConfigError);
    }
}

TEST_CASE("gpt2 has LayerNorm with bias in fp16, and --dtype replaces the model's") {
    const Workload workload = model_workload(read_model("gpt2"), {.tokens = {1}, .dtype = {}});
    REQUIRE_FALSE(workload.problems.empty());
    CHECK(to_string(workload.problems.front()).starts_with("layernorm dtype=fp16"));
    CHECK(to_string(workload.problems.front()).find("bias=yes") != std::string::npos);
    const Workload fp32 = model_workload(read_model("gpt2"), {.tokens = {1}, .dtype = Dtype::fp32});
    CHECK(to_string(fp32.problems.front()).find("dtype=fp32") != std::string::npos);
}

TEST_CASE("operators without a family are listed, with their shape") {
    Model experts = read_model("mistral-7b");
    experts.experts = 8;
    CHECK(by_role(operators(experts, {}), "experts").family == "fused_moe");
    const Workload workload = model_workload(experts, {});
    REQUIRE(workload.without_family.size() == 2);
    CHECK(workload.without_family[0].family == "other_routing");
    CHECK(workload.without_family[1].shape == "4096 -> 14336, 8 experts");
}

TEST_CASE("one operator: its fields, at all token counts or at the one given") {
    CHECK(operator_workload("rmsnorm", "dtype=bf16 hidden=4096", {.tokens = {1, 16}, .dtype = {}})
              .problems.size() == 2);
    CHECK(operator_workload("rmsnorm", "dtype=bf16 hidden=4096 rows=100", {}).problems.size() == 1);
    CHECK(
        operator_workload("rmsnorm", "hidden=4096", {.tokens = {1}, .dtype = Dtype::fp32}).problems.size() ==
        1);
    CHECK_THROWS_AS(static_cast<void>(operator_workload("rmsnrom", "hidden=4096", {})), ConfigError);
    CHECK_THROWS_AS(static_cast<void>(operator_workload("rmsnorm", "dtype=bf16 hiden=4096", {})),
                    ConfigError);
    CHECK_THROWS_AS(static_cast<void>(operator_workload("rmsnorm", "dtype=bf16 hidden=4096 hidden=4096", {})),
                    ConfigError);
    CHECK_THROWS_AS(static_cast<void>(operator_workload("rmsnorm", "dtype=bf16", {})), ConfigError);
}

TEST_CASE("one operator of several sizes: all in its fields, or all but one and token counts for that") {
    const std::string fields = "dtype=bf16 heads=32 kv_heads=8 head_dim=128 q_tokens=1";
    const auto texts = [&](const std::string& sizes, const std::vector<std::int64_t>& tokens) {
        Texts found;
        for (const Problem& problem :
             operator_workload("attention_decode", fields + sizes, {.tokens = tokens, .dtype = {}}).problems)
            found.push_back(dynamic_text(problem));
        return found;
    };
    CHECK(texts(" batch=8 kv_len=4096", {}) == Texts{"batch=8 kv_len=4096 q_len=1"});
    CHECK(texts(" batch=8", {512, 64}) == Texts{"batch=8 kv_len=64 q_len=1", "batch=8 kv_len=512 q_len=1"});
    CHECK(texts(" kv_len=64", {2}) == Texts{"batch=2 kv_len=64 q_len=1"});
    CHECK_THROWS_WITH_AS(static_cast<void>(texts("", {8})), doctest::Contains("batch and kv_len"),
                         ConfigError);
    CHECK_THROWS_AS(static_cast<void>(texts(" batch=8", {})), ConfigError);
}
