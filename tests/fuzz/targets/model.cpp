// Model files: config.json where the input begins with '{', else YAML; then the sizes, the operators and the
// problems that `hone tune` makes of them.
#include "models/model.h"
#include "checkpoints/pack/weight_format.h"
#include "runtime/system/input_error.h"
#include "runtime/system/strict_json.h"
#include "tests/fuzz/fuzz.h"
#include "tuner/models/workload.h"

namespace {

using namespace hone;
using namespace hone::models;
using namespace hone::tuner;
using hone::fuzz::require;

constexpr const char* sizes = R"("hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32,
 "num_key_value_heads": 8, "num_hidden_layers": 32, "vocab_size": 128256, "max_position_embeddings": 8192,
 "rms_norm_eps": 1e-05, "hidden_act": "silu", "rope_theta": 500000.0, "torch_dtype": "bfloat16")";
constexpr const char* gptq = R"(,
 "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": true, "sym": true})";
constexpr const char* awq = R"(,
 "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true,
  "version": "gemm"})";
constexpr const char* fp8 = R"(,
 "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]})";
constexpr const char* gpt2_yaml = R"(# as configs/models has them
model_type: gpt2
n_embd: 768
n_head: 12
n_layer: 12
n_positions: 1024
vocab_size: 50257
layer_norm_epsilon: 1.0e-5
activation_function: gelu_new
)";
constexpr const char* nested_yaml = R"(model_type: qwen2
text_config: {hidden_size: 3584, intermediate_size: 18944, num_attention_heads: 28, num_key_value_heads: 4}
num_hidden_layers: 28
vocab_size: 152064
rms_norm_eps: 1e-06
sliding_window: null
quantization_config: {quant_method: awq, bits: 4, group_size: 64, zero_point: true}
)";

constexpr const char* latent =
    R"("model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
 "num_attention_heads": 128, "num_hidden_layers": 61, "vocab_size": 129280, "q_lora_rank": 1536, "kv_lora_rank": 512,
 "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256,
 "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, "first_k_dense_replace": 3,
 "moe_layer_freq": 1, "rms_norm_eps": 1e-06)";
constexpr const char* chunks = R"("model_type": "llama4", "text_config": {"model_type": "llama4_text",
 "num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0], "moe_layers": [1, 3], "attention_chunk_size": 8192,
 "intermediate_size_mlp": 16384, "layer_types": ["chunked_attention", "chunked_attention", "chunked_attention",
 "full_attention"]}, "torch_dtype": "bfloat16")";

std::string object(const std::string& members) { return "{\n " + members + "\n}\n"; }

ModelDocument document(const std::string& text) {
    return text.starts_with('{') ? ModelDocument::from_json(text, "input.json")
                                 : ModelDocument::from_yaml(text, "input.yaml");
}

void check_sizes(const Model& model) {
    for (const std::int64_t size :
         {model.hidden_size, model.intermediate_size, model.num_attention_heads, model.num_key_value_heads,
          model.head_dim, model.num_hidden_layers, model.vocab_size}) {
        require(size >= 1 && size <= 4 * max_model_size, "a model's sizes are in range");
    }
    require(model.num_attention_heads % model.num_key_value_heads == 0, "key-value heads divide the heads");
}

/// The problems of a model, which are all valid, or nothing where its operators are refused.
std::optional<Workload> workload_of(const Model& model) {
    try {
        const WorkloadOptions options{.tokens = {16}, .dtype = {}, .tensor_parallel = 1};
        Workload workload = model_workload(model, options);
        for (const Problem& problem : workload.problems)
            require(parse_problem(to_string(problem)) == problem, "a model's problems are valid");
        return workload;
    } catch (const runtime::InputError&) {
        return std::nullopt;
    }
}

/// The same keys written anew by the JSON library mean the same model.
void check_rewritten(const std::string& text, const std::optional<Workload>& workload) {
    const std::string again = runtime::parse_json_object(text, "input.json").dump();
    const auto reread = workload_of(model_from(ModelDocument::from_json(again, "again.json"), "again"));
    require(reread.has_value() == workload.has_value(), "written anew, a model is accepted the same");
    require(!workload || reread->problems == workload->problems,
            "written anew, a model has the same problems");
}

}  // namespace

const int hone::fuzz::mutations = 3000;

std::vector<hone::fuzz::Seed> hone::fuzz::seeds() {
    return {{"gpt2.yaml", gpt2_yaml},
            {"nested.yaml", nested_yaml},
            {"plain.json", object(sizes)},
            {"latent.json", object(latent)},
            {"chunks.json", object(chunks)},
            {"nested.json", object("\"text_config\": " + object(sizes))},
            {"gptq.json", object(std::string(sizes) + gptq)},
            {"awq.json", object(std::string(sizes) + awq)},
            {"fp8.json", object(std::string(sizes) + fp8)}};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(hone::fuzz::text_of(data, size));
    try {
        const Model model = model_from(document(text), "input");
        hone::fuzz::count_read();
        check_sizes(model);
        const std::optional<Workload> workload = workload_of(model);
        if (text.starts_with('{')) check_rewritten(text, workload);
        if (model.quantization) static_cast<void>(checkpoints::weight_format(*model.quantization));
    } catch (const runtime::InputError& error) {
        require(std::string_view(error.what()).starts_with("input."), "a refusal names the file");
    }
    return 0;
}
