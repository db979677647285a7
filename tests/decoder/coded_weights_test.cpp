// Folders with codes on the fake GPU: what has arrived there means what the folder's codes mean.
// Starts threads: the thread sanitizer runs this file, too.
#include <doctest/doctest.h>

#include <atomic>

#include "checkpoints/pack/quantize_checkpoint.h"
#include "decoder/engine/running_model.h"
#include "decoder/error.h"
#include "tests/decoder/coded_folder.h"
#include "tests/decoder/coded_model.h"
#include "tests/support/fake_machine.h"

using namespace hone;
using namespace hone::decoder;
using namespace hone::test;
using nlohmann::json;

namespace {

const json gptq_config{
    {"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}, {"checkpoint_format", "gptq"}};
const json gptq_8_config{
    {"quant_method", "gptq"}, {"bits", 8}, {"group_size", -1}, {"sym", true}, {"checkpoint_format", "gptq"}};
const json awq_config{{"quant_method", "awq"}, {"bits", 4}, {"group_size", 32}, {"zero_point", true}};
const json fp8_config{{"quant_method", "fp8"}};

CodedFolder folder_of_gptq(const CodedSizes& sizes = {}, const std::string& model_type = "llama") {
    CodedFolder folder(sizes, model_type);
    folder.config["quantization_config"] = gptq_config;
    folder.all_layers([&](const auto& name, auto out, auto in) { folder.gptq(name, out, in); });
    return folder;
}

CodedFolder folder_of_fp8(const CodedSizes& sizes, std::size_t rows, std::size_t columns) {
    CodedFolder folder(sizes);
    folder.config["quantization_config"] = fp8_config;
    if (rows == 128) folder.config["quantization_config"]["weight_block_size"] = {128, 128};
    folder.all_layers([&](const auto& name, auto out, auto in) {
        folder.fp8(name, out, in, rows == 0 ? out : rows, columns == 0 ? in : columns);
    });
    return folder;
}

std::string refusal_of(const CodedFolder& folder,
                       const std::optional<checkpoints::QuantizeRequest>& wanted = {}) {
    ModelOptions options = options_of(folder.write());
    options.quantize = wanted;
    return refusal([&] { return std::make_unique<RunningModel>(options); });
}

class OnGpu {
  public:
    explicit OnGpu(const ModelOptions& options) : model(options) {}

    /// The values of a weight, [rows, columns].
    [[nodiscard]] std::vector<float> values(const MatrixWeight& weight) const {
        REQUIRE(weight.is_coded);
        const checkpoints::WeightFormat& format = model.weights().code_format;
        const PackedShape shape{.format = *format.format,
                                .out = weight.rows,
                                .in = weight.columns,
                                .group = format.group,
                                .zeros = format.zeros,
                                .scale_dtype = model.description().model.dtype};
        const auto codes = bytes(weight.packed.codes, packed_bytes(shape.format, shape.out, shape.in));
        const auto scales = bytes(weight.packed.scales, scale_bytes(shape));
        const auto zeros = bytes(weight.packed.zeros, zero_count(shape));
        std::vector<float> values(static_cast<std::size_t>(shape.out * shape.in));
        dequantize(shape, {codes, scales, zeros}, values);
        return values;
    }
    [[nodiscard]] std::vector<std::uint8_t> bytes(const void* from, std::int64_t count) const {
        return on_gpu<std::uint8_t>(model, from, static_cast<std::size_t>(count));
    }

    RunningModel model;
};

std::vector<float> joined(const CodedFolder& folder, std::size_t layer,
                          const std::vector<std::string>& names) {
    std::vector<float> all;
    for (const std::string& name : names) {
        const std::vector<float>& values = folder.values.at(CodedFolder::layer(layer, name));
        all.insert(all.end(), values.begin(), values.end());
    }
    return all;
}

/// All linear layers mean what the folder's do, and the language head is numbers.
void check_layers(const OnGpu& gpu, const CodedFolder& folder) {
    const ModelWeights& weights = gpu.model.weights();
    REQUIRE(weights.layers.size() == folder.sizes.layers);
    for (std::size_t i = 0; i < weights.layers.size(); ++i) {
        CAPTURE(i);
        const LayerWeights& layer = weights.layers[i];
        CHECK(gpu.values(layer.qkv) ==
              joined(folder, i, {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}));
        CHECK(gpu.values(layer.output) == joined(folder, i, {"self_attn.o_proj"}));
        CHECK(gpu.values(layer.gate) == joined(folder, i, {"mlp.gate_proj"}));
        CHECK(gpu.values(layer.up) == joined(folder, i, {"mlp.up_proj"}));
        CHECK(gpu.values(layer.down) == joined(folder, i, {"mlp.down_proj"}));
    }
    CHECK_FALSE(weights.head.is_coded);
}

/// Makes the folder NAME beside the other, as hone quantize does.
std::filesystem::path packed(const CodedFolder& folder, const std::string& name,
                             const checkpoints::QuantizeRequest& request) {
    const auto checkpoint = checkpoints::Checkpoint::open(folder.write());
    const auto layers = checkpoints::layer_source(checkpoint, request);
    const std::atomic<bool> stop = false;
    REQUIRE(checkpoints::quantize_checkpoint(
        checkpoint, *layers, folder.beside(name), [](const auto&) {}, stop));
    return folder.beside(name);
}

}  // namespace

TEST_CASE("codes of GPTQ, AWQ and FP8 arrive on the GPU and mean what they meant") {
    const FakeMachine machine;
    CodedFolder awq;
    awq.config["quantization_config"] = awq_config;
    awq.all_layers([&](const auto& name, auto out, auto in) { awq.awq(name, out, in); });
    CodedFolder of_8_bits;
    of_8_bits.config["quantization_config"] = gptq_8_config;
    of_8_bits.all_layers([&](const auto& name, auto out, auto in) { of_8_bits.gptq(name, out, in, 8, in); });
    const CodedSizes wide{.hidden = 256, .kv_heads = 4};
    const CodedFolder folders[]{folder_of_gptq({}),      std::move(awq),
                                std::move(of_8_bits),    folder_of_fp8({}, 1, 0),
                                folder_of_fp8({}, 0, 0), folder_of_fp8(wide, 128, 128)};
    const char* formats[]{"w4a16", "w4a16", "w8a16", "fp8", "fp8", "fp8"};
    for (std::size_t i = 0; i < std::size(folders); ++i) {
        CAPTURE(i);
        OnGpu gpu(options_of(folders[i].write()));
        CHECK(name(*gpu.model.weights().code_format.format) == formats[i]);
        check_layers(gpu, folders[i]);
        CHECK(step_of(gpu.model) == 0);
    }
}

TEST_CASE("8 bits of GPTQ are codes of w8a8, too, where that is asked for") {
    const FakeMachine machine;
    CodedFolder folder;
    folder.config["quantization_config"] = gptq_8_config;
    folder.all_layers([&](const auto& name, auto out, auto in) { folder.gptq(name, out, in, 8, in); });
    ModelOptions options = options_of(folder.write());
    options.quantize = checkpoints::QuantizeRequest{.format = QuantFormat::w8a8};
    const OnGpu gpu(options);
    CHECK(*gpu.model.weights().code_format.format == QuantFormat::w8a8);
    check_layers(gpu, folder);
}

TEST_CASE("what hone quantize has written arrives as it is") {
    const FakeMachine machine;
    const CodedFolder gptq = folder_of_gptq();
    OnGpu gpu(options_of(packed(gptq, "of_gptq", {.format = QuantFormat::w4a16})));
    check_layers(gpu, gptq);
    CHECK(gpu.model.description().model.dtype == Dtype::fp16);
    CHECK(step_of(gpu.model) == 0);
}

TEST_CASE("codes that hone quantize makes of numbers arrive as the host has made them") {
    const FakeMachine machine;
    CodedFolder numbers({.hidden = 256, .kv_heads = 4});
    numbers.all_layers([&](const auto& name, auto out, auto in) { numbers.numbers(name, out, in); });
    const checkpoints::QuantizeRequest requests[]{{.format = QuantFormat::w4a16, .group = 64},
                                                  {.format = QuantFormat::w4a16, .group = 0, .zeros = true},
                                                  {.format = QuantFormat::w8a16},
                                                  {.format = QuantFormat::w8a8},
                                                  {.format = QuantFormat::fp8},
                                                  {.format = QuantFormat::fp8, .group = 128}};
    for (std::size_t i = 0; i < std::size(requests); ++i) {
        CAPTURE(i);
        const auto checkpoint = checkpoints::Checkpoint::open(numbers.write());
        const auto layers = checkpoints::layer_source(checkpoint, requests[i]);
        for (const checkpoints::LayerOutline& layer : layers->layers()) {
            const QuantizedWeight weight = layers->pack(layer).weight;
            dequantize(weight.shape, weight.view(), numbers.values[layer.name]);
        }
        const OnGpu gpu(options_of(packed(numbers, "packed" + std::to_string(i), requests[i])));
        check_layers(gpu, numbers);
    }
}

TEST_CASE("the language head has codes where the folder has them for it, tied or not") {
    const FakeMachine machine;
    CodedFolder folder;
    folder.all_layers([&](const auto& name, auto out, auto in) { folder.numbers(name, out, in); });
    const OnGpu gpu(options_of(packed(folder, "with_head", {.format = QuantFormat::w8a16, .lm_head = true})));
    CHECK(gpu.model.weights().head.is_coded);
    folder.config["tie_word_embeddings"] = true;
    const OnGpu tied(options_of(packed(folder, "tied", {.format = QuantFormat::w8a16, .lm_head = true})));
    CHECK(tied.model.weights().head.is_coded);
    const OnGpu table(options_of(packed(folder, "table", {.format = QuantFormat::w8a16})));
    CHECK(table.model.weights().head.values == table.model.weights().embedding);
}

TEST_CASE("tensors of several weights are taken apart: queries, keys and values, and gate and up") {
    const FakeMachine machine;
    const CodedFolder folder = folder_of_gptq({}, "phi3");
    const OnGpu gpu(options_of(folder.write()));
    const LayerWeights& layer = gpu.model.weights().layers[1];
    CHECK(gpu.values(layer.qkv) == joined(folder, 1, {"self_attn.qkv_proj"}));
    std::vector<float> both = gpu.values(layer.gate);
    const std::vector<float> up = gpu.values(layer.up);
    both.insert(both.end(), up.begin(), up.end());
    CHECK(both == joined(folder, 1, {"mlp.gate_up_proj"}));
}

TEST_CASE("layers that were left out stay numbers beside others with codes") {
    const FakeMachine machine;
    CodedFolder folder = folder_of_gptq();
    for (const auto& [name, extents] : folder.linear_layers()) {
        if (!name.starts_with("model.layers.0.mlp") && !name.ends_with("1.self_attn.o_proj")) continue;
        for (const char* part : {".qweight", ".qzeros", ".scales"}) folder.tensors.erase(name + part);
        folder.numbers(name, extents.first, extents.second);
    }
    OnGpu gpu(options_of(folder.write()));
    const std::vector<LayerWeights>& layers = gpu.model.weights().layers;
    CHECK_FALSE(layers[0].down.is_coded);
    CHECK(layers[1].down.is_coded);
    CHECK(layers[0].output.is_coded);
    CHECK_FALSE(layers[1].output.is_coded);
    CHECK(gpu.values(layers[1].down) == joined(folder, 1, {"mlp.down_proj"}));
    CHECK(step_of(gpu.model) == 0);
}

TEST_CASE("x is of the dtype of the scales, whatever config.json says of numbers") {
    const FakeMachine machine;
    CodedFolder folder = folder_of_gptq();
    folder.config["torch_dtype"] = "bfloat16";
    const OnGpu gpu(options_of(folder.write()));
    CHECK(gpu.model.description().model.dtype == Dtype::fp16);
    check_layers(gpu, folder);
}

TEST_CASE("--format on a folder with codes has to name what they are") {
    const FakeMachine machine;
    const CodedFolder folder = folder_of_gptq();
    CHECK(refusal_of(folder, {{.format = QuantFormat::w4a16}}).empty());
    CHECK(refusal_of(folder, {{.format = QuantFormat::w4a16, .group = 32, .zeros = true}}).empty());
    CHECK(contains(refusal_of(folder, {{.format = QuantFormat::w8a16}}),
                   "bits is 4; allowed: 8 with --format w8a16"));
    CHECK(contains(refusal_of(folder, {{.format = QuantFormat::fp8}}), "quant_method is \"gptq\""));
    CHECK(contains(refusal_of(folder, {{.format = QuantFormat::w4a16, .group = 64}}),
                   "quantization_config says that the weights have codes already, in groups of 32 columns"));
    CHECK(contains(refusal_of(folder, {{.format = QuantFormat::w4a16, .lm_head = true}}), "--lm-head: "));
    CodedFolder symmetric;
    symmetric.config["quantization_config"] = gptq_8_config;
    symmetric.all_layers([&](const auto& name, auto out, auto in) { symmetric.gptq(name, out, in, 8, in); });
    CHECK(contains(refusal_of(symmetric, {{.format = QuantFormat::w8a16, .zeros = true}}), "--zeros: "));
    const auto written = packed(folder, "packed", {.format = QuantFormat::w4a16});
    ModelOptions options = options_of(written);
    options.quantize = checkpoints::QuantizeRequest{.format = QuantFormat::fp8};
    CHECK(
        contains(refusal([&] { return std::make_unique<RunningModel>(options); }),
                 "--format fp8: " + (written / "config.json").string() +
                     ": quantization_config says that the weights have codes already, of the format w4a16"));
}

TEST_CASE("codes that do not go are refused by layer, tensor or key, before any is read") {
    const FakeMachine machine;
    const std::string up = "model.layers.1.mlp.up_proj";
    const auto refused = [&](const auto& change) {
        CodedFolder folder = folder_of_gptq();
        change(folder);
        return refusal_of(folder);
    };
    CHECK(contains(refused([](auto& folder) { folder.config["quantization_config"]["bits"] = 3; }),
                   "bits is 3; allowed: 4 and 8"));
    CHECK(
        contains(refused([](auto& folder) { folder.config["quantization_config"]["quant_method"] = "exl2"; }),
                 "quant_method is \"exl2\""));
    CHECK(contains(refused([&](auto& folder) { folder.tensors.erase(up + ".scales"); }), up + ".scales"));
    CHECK(contains(refused([&](auto& folder) { folder.tensors.erase(up + ".qzeros"); }), up + ".qzeros"));
    CHECK(contains(refused([&](auto& folder) {
                       folder.tensors[up + ".scales"].shape = {2, 512};
                   }),
                   "shape [2, 512]; needed is [4, 256]"));
    CHECK(contains(refused([&](auto& folder) { folder.gptq(up, 192, 128); }),
                   "layer '" + up +
                       "' has codes of a weight [192, 128]; as config.json says, it has to be "
                       "[256, 128]"));
    CHECK(contains(
        refused([&](auto& folder) {
            folder.tensors.erase(up + ".qweight");
            folder.numbers(up, 256, 128);
        }),
        "the feed-forward network of layer 1 has codes of some of its weights and numbers of others"));
    CHECK(contains(refused([&](auto& folder) {
                       folder.tensors.erase("model.layers.0.self_attn.k_proj.qweight");
                       folder.numbers("model.layers.0.self_attn.k_proj", 64, 128);
                   }),
                   "model.layers.0.self_attn.q_proj.weight has codes and "
                   "model.layers.0.self_attn.k_proj.weight has numbers"));
    CHECK(contains(refused([&](auto& folder) {
                       std::vector<std::uint32_t> turned;
                       for (std::uint32_t i = 0; i < 128; ++i) turned.push_back(i % 4);
                       folder.tensors.set(up + ".g_idx", {128}, turned);
                   }),
                   "activation order (desc_act)"));
    CHECK(contains(refusal_of(folder_of_fp8({}, 128, 128)),
                   "layer 'model.layers.0.self_attn.v_proj': its codes would have to be cut, or put behind "
                   "others, at row 192; allowed with fp8 are multiples of 128"));
    CodedFolder unscaled = folder_of_fp8({}, 1, 0);
    unscaled.tensors.erase(up + ".weight_scale");
    CHECK(contains(refusal_of(unscaled), "has neither weight_scale nor weight_scale_inv"));
}

TEST_CASE("a packed folder that is not as its config.json says is refused") {
    const FakeMachine machine;
    const CodedFolder folder = folder_of_gptq();
    const auto out = packed(folder, "out", {.format = QuantFormat::w4a16});
    json config = json::parse(std::ifstream(out / "config.json"));
    const auto refused = [&](const auto& change) {
        json changed = config;
        change(changed["quantization_config"]);
        write_text(out / "config.json", changed.dump());
        return refusal([&] { return std::make_unique<RunningModel>(options_of(out)); });
    };
    const char* const down = "model.layers.0.mlp.down_proj";
    CHECK(refused([](json&) {}).empty());
    CHECK(contains(refused([](json& at) { at["layout"] = 2; }), "layout is 2; allowed: 1"));
    CHECK(contains(refused([](json& at) { at["group"] = 48; }), "48"));
    CHECK(contains(refused([](json& at) { at["group"] = 64; }), "needed is"));
    CHECK(contains(refused([](json& at) { at["layers"] = json::object(); }), "at least one"));
    CHECK(contains(refused([](json& at) { at["input_order"] = true; }), ".input_order"));
    CHECK(contains(refused([](json& at) { at["dtype"] = "bf16"; }), "dtype F16; allowed is BF16"));
    for (const json& extents :
         {json{128, -256}, json{128}, json("wide"), json{128, 1.5}, json{0, 256}, json{1LL << 62, 256}}) {
        CHECK(contains(refused([&](json& at) { at["layers"][down] = extents; }),
                       "layers: 'model.layers.0.mlp.down_proj' is "));
    }
    CHECK(contains(refused([&](json& at) { at["layers"][down] = {128, 320}; }), "needed is"));
    CHECK(contains(refused([&](json& at) {
                       at["layers"]["model.layers.7.mlp.down_proj"] = {128, 256};
                   }),
                   "model.layers.7.mlp.down_proj.codes"));
}
